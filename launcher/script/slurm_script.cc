// A job script's Slurm part. --signal reaches the tasks of a step, which are hvrun's agents, and so
// the ranks; a job that comes back has it sent to the script instead.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_script.h"
#include "launcher/script/job_time.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostSlurmNameBytes = 64;

// Slurm counts hardware threads unless the hint takes one of each core.
int cpus_per_task(const Site& site, const ScriptPlan& plan) {
  const bool is_by_core = site.hint == "nomultithread";
  return plan.cores_per_rank * (is_by_core ? 1 : plan.partition.threads_per_core);
}

void add_slurm_layout(const Site& site, const ScriptPlan& plan, std::vector<std::string>* out) {
  if (plan.nodes > 0) {
    out->push_back("--nodes=" + std::to_string(plan.nodes));
    out->push_back("--ntasks-per-node=" + std::to_string(plan.ranks_per_node));
  } else {
    out->push_back("--ntasks=" + std::to_string(plan.ranks));
  }
  if (plan.gpus_per_node() > 0) out->push_back("--gres=" + gpu_request(site, plan.gpus_per_node()));
  if (plan.cores_per_rank > 0)
    out->push_back("--cpus-per-task=" + std::to_string(cpus_per_task(site, plan)));
  if (!site.hint.empty()) out->push_back("--hint=" + site.hint);
  if (plan.partition.is_exclusive) out->push_back("--exclusive");
}

void add_text(const std::string& option, const std::string& value, std::vector<std::string>* out) {
  if (!value.empty()) out->push_back(option + "=" + value);
}

}  // namespace

SchedulerPart slurm_part(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  SchedulerPart part{"#SBATCH", {}, {}, "", {}};
  std::vector<std::string>& out = part.directives;
  add_text("--job-name", job_name(request, kMostSlurmNameBytes), &out);
  add_slurm_layout(site, plan, &out);
  add_text("--partition", plan.partition.queue, &out);
  add_text("--constraint", plan.partition.constraint, &out);
  add_text("--account", plan.account, &out);
  add_text("--qos", plan.qos, &out);
  if (plan.time) add_text("--time", format_job_time(*plan.time), &out);
  add_text("--output", request.output, &out);
  const std::string before = "@" + std::to_string(warning_time(request, plan).count());
  if (!request.requeues) {
    if (request.signal) out.push_back("--signal=" + request.signal->name + before);
    out.emplace_back("--no-requeue");
  } else {
    const std::string signal = request.signal ? request.signal->name : "USR1";
    out.push_back("--signal=B:" + signal + before);
    out.emplace_back("--requeue");
    out.emplace_back("--open-mode=append");  // else a run would erase what the last one wrote
    part.guard = Guard{signal,
                       request.signal ? signal : "TERM",
                       warning_time(request, plan),
                       {},
                       "",
                       Requeue{"scontrol requeue \"$SLURM_JOB_ID\"",
                               "[ \"$(squeue -h -j \"$SLURM_JOB_ID\" -o %r)\" = TimeLimit ]",
                               *request.requeues, "${SLURM_RESTART_COUNT:-0}", ""}};
  }
  if (plan.is_uneven()) part.hvrun_options = {"-np", std::to_string(plan.ranks)};
  return part;
}

}  // namespace hv::launcher
