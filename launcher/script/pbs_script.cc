// A job script's PBS part: a chunk for each node. PBS signals nobody before the time limit, so the
// script goes by its own clock.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/script/job_script.h"
#include "launcher/script/job_time.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostPbsNameBytes = 15;  // what older versions take

std::string chunks(const Site& site, const ScriptPlan& plan) {
  const bool is_spread_by_pbs = plan.nodes == 0;
  const int number = is_spread_by_pbs ? plan.ranks : plan.nodes;
  const int ranks = is_spread_by_pbs ? 1 : plan.ranks_per_node;
  const long cores = static_cast<long>(ranks) * std::max(1, plan.cores_per_rank);
  std::string text = "select=" + std::to_string(number) + ":ncpus=" + std::to_string(cores) +
                     ":mpiprocs=" + std::to_string(ranks);
  if (plan.gpus_per_node() > 0) text += ":" + gpu_request(site, plan.gpus_per_node());
  if (!plan.partition.constraint.empty()) text += ":" + plan.partition.constraint;
  return text;
}

std::string place(const ScriptPlan& plan) {
  const std::string where = plan.nodes > 0 ? "scatter" : "free";
  return "place=" + where + (plan.partition.is_exclusive ? ":excl" : "");
}

}  // namespace

SchedulerPart pbs_part(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  SchedulerPart part{"#PBS", {}, {}, "", {}};
  std::vector<std::string>& out = part.directives;
  out.push_back("-N " + job_name(request, kMostPbsNameBytes));
  out.push_back("-l " + chunks(site, plan));
  out.push_back("-l " + place(plan));
  if (!plan.partition.queue.empty()) out.push_back("-q " + plan.partition.queue);
  if (!plan.account.empty()) out.push_back("-A " + plan.account);
  if (plan.time) out.push_back("-l walltime=" + format_job_time(*plan.time));
  out.emplace_back("-j oe");
  out.emplace_back("-S /bin/bash");                   // the first line is nothing to some versions
  part.preparation = "cd \"${PBS_O_WORKDIR:-.}\"\n";  // else it were the home folder
  if (!request.output.empty()) out.push_back("-o " + request.output);
  out.emplace_back(request.requeues ? "-r y" : "-r n");
  if (request.signal || request.requeues) {
    const std::string signal = request.signal ? request.signal->name : "USR1";
    const std::chrono::seconds before = warning_time(request, plan);
    part.guard =
        Guard{signal, request.signal ? signal : "TERM", before, *plan.time - before, "", {}};
    if (request.requeues)
      part.guard->requeue =
          Requeue{"qrerun \"$PBS_JOBID\"", "", *request.requeues, "", "\"$PBS_JOBID\""};
  }
  if (plan.is_uneven()) part.hvrun_options = {"-np", std::to_string(plan.ranks)};
  return part;
}

}  // namespace hv::launcher
