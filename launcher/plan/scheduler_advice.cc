// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/scheduler_advice.h"

#include <algorithm>
#include <cstdint>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

// GPUs of the job, and those that ranks use; a host's own GPUs are of no use to another host.
struct GpuUse {
  std::int64_t all = 0, used = 0;
};

GpuUse gpu_use(const JobSpec& spec, const HostList& list, const LaunchPlan& plan) {
  const std::int64_t each = spec.placement.gpus_per_rank;
  const GpusOfJob& gpus = list.scheduler_gpus;
  if (gpus.of_each_host == 0)
    return {gpus.in_all, static_cast<std::int64_t>(plan.ranks.size()) * each};
  GpuUse use{gpus.of_each_host * static_cast<std::int64_t>(list.entries.size()), 0};
  for (const PlannedHost& host : plan.hosts)
    use.used += std::min<std::int64_t>(gpus.of_each_host, host.ranks * each);
  return use;
}

}  // namespace

std::string request_more_slots(const std::string& scheduler, long ranks, std::size_t hosts) {
  const auto nodes = static_cast<long>(hosts);
  const std::string all = std::to_string(ranks), each = std::to_string((ranks + nodes - 1) / nodes);
  if (scheduler == "Slurm") return "request more tasks (sbatch or salloc --ntasks=" + all + ")";
  if (scheduler == "PBS")
    return "request more slots (qsub -l select=" + std::to_string(nodes) + ":mpiprocs=" + each +
           "; Torque: -l nodes=" + std::to_string(nodes) + ":ppn=" + each + ")";
  if (scheduler == "LSF") return "request more slots (bsub -n " + all + ")";
  if (scheduler == "SGE") return "request more slots (qsub -pe NAME " + all + ")";
  return "raise slotsPerWorker in the MPIJob to " + each + ", or its number of worker replicas";
}

void warn_of_idle_gpus(const JobSpec& spec, const HostList& list, LaunchPlan* plan) {
  // An unknown number of slots is that of the host's GPUs.
  if (std::any_of(plan->hosts.begin(), plan->hosts.end(),
                  [](const PlannedHost& host) { return host.slots_assumed; }))
    return;
  // The user has chosen among the GPUs.
  if (std::any_of(list.entries.begin(), list.entries.end(), [](const HostEntry& entry) {
        return !entry.gpus.empty() || !entry.without_gpus.empty();
      }))
    return;
  const GpuUse use = gpu_use(spec, list, *plan);
  if (use.used >= use.all) return;
  const auto ranks = static_cast<std::int64_t>(plan->ranks.size());
  std::string text = count_of(ranks, "rank") + word_for(ranks, " uses ", " use ") +
                     std::to_string(use.used) + " of the " + std::to_string(use.all) +
                     " GPUs of this " + list.scheduler + " job: ";
  text += spec.ranks ? "--map-by gpu without -np" : "--map-by gpu";
  text += " starts a rank for each GPU";
  if (use.all % ranks == 0)
    text += ", --gpus-per-rank " + std::to_string(use.all / ranks) +
            " says that a rank uses so many itself";
  plan->warnings.push_back(std::move(text));
}

}  // namespace hv::launcher
