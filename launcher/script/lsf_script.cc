// A job script's LSF part. A slot is a core there: ranks of several cores have several slots, and
// hvrun is told how many ranks a host has.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "launcher/script/job_script.h"
#include "launcher/script/job_time.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostLsfNameBytes = 64;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

void add_lsf_layout(const Site& site, const ScriptPlan& plan, SchedulerPart* part) {
  const int slots = std::max(1, plan.cores_per_rank);
  // Whole hosts where ranks have several slots: a last one with fewer would have a rank's too few.
  const bool is_whole = slots > 1 && plan.nodes > 0;
  const std::int64_t ranks =
      is_whole ? std::int64_t{plan.nodes} * plan.ranks_per_node : std::int64_t{plan.ranks};
  part->directives.push_back("-n " + std::to_string(ranks * slots));
  if (plan.nodes > 0) {
    const std::int64_t on_host = std::int64_t{plan.ranks_per_node} * slots;
    part->directives.push_back("-R " + quoted("span[ptile=" + std::to_string(on_host) + "]"));
  }
  if (plan.gpus_per_node() > 0)
    part->directives.push_back("-gpu " + quoted(gpu_request(site, plan.gpus_per_node())));
  if (is_whole)
    part->hvrun_options = {"-np", std::to_string(plan.ranks), "--npernode",
                           std::to_string(plan.ranks_per_node)};
  else if (slots > 1)
    part->hvrun_options = {"-np", std::to_string(plan.ranks)};
}

}  // namespace

SchedulerPart lsf_part(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  SchedulerPart part{"#BSUB", {}, {}, "", {}};
  std::vector<std::string>& out = part.directives;
  out.push_back("-J " + job_name(request, kMostLsfNameBytes));
  add_lsf_layout(site, plan, &part);
  if (!plan.partition.constraint.empty())
    out.push_back("-R " + quoted("select[" + plan.partition.constraint + "]"));
  if (plan.partition.is_exclusive) out.emplace_back("-x");
  if (!plan.partition.queue.empty()) out.push_back("-q " + plan.partition.queue);
  if (!plan.account.empty()) out.push_back("-P " + plan.account);
  if (plan.time) out.push_back("-W " + format_hours_and_minutes(*plan.time));
  out.push_back("-o " + (request.output.empty() ? "%J.out" : request.output));
  out.emplace_back(request.requeues ? "-r" : "-rn");
  if (request.signal || request.requeues) {
    const std::string signal = request.signal ? request.signal->name : "USR1";
    // LSF counts in minutes.
    const std::chrono::seconds before =
        std::chrono::ceil<std::chrono::minutes>(warning_time(request, plan));
    out.push_back("-wt " + quoted(format_hours_and_minutes(before)));
    out.push_back("-wa " + quoted(signal));
    // At the limit itself LSF sends USR2 to all.
    part.guard = Guard{signal, request.signal ? signal : "TERM", before,
                       {},     signal == "USR2" ? "" : "USR2",   {}};
    if (request.requeues)
      part.guard->requeue =
          Requeue{"brequeue \"$LSB_JOBID\"", "", *request.requeues, "", "\"$LSB_JOBID\""};
  }
  return part;
}

}  // namespace hv::launcher
