// Schedulers that name a file with the job's hosts.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {

// PBS and Torque: $PBS_NODEFILE has a line for each slot.
std::optional<HostList> hosts_of_pbs(const Environment& environment, const ReadFile& read) {
  const auto file = environment.get_filled("PBS_NODEFILE");
  if (!environment.has("PBS_JOBID") || !file) return std::nullopt;
  return parse_hostfile(read(*file, "$PBS_NODEFILE"), *file, HostfileForm::kNames);
}

// SGE and its descendants: $PE_HOSTFILE has a line for each host, with its slots and its queue.
std::optional<HostList> hosts_of_sge(const Environment& environment, const ReadFile& read) {
  const auto file = environment.get_filled("PE_HOSTFILE");
  if (!environment.has("JOB_ID") || !file) return std::nullopt;
  return parse_hostfile(read(*file, "$PE_HOSTFILE"), *file, HostfileForm::kQueues);
}

// LSF: $LSB_DJOB_HOSTFILE has a line for each slot; $LSB_MCPU_HOSTS is hosts, each with its number.
std::optional<HostList> hosts_of_lsf(const Environment& environment, const ReadFile& read) {
  if (!environment.has("LSB_JOBID")) return std::nullopt;
  if (const auto file = environment.get_filled("LSB_DJOB_HOSTFILE"))
    return parse_hostfile(read(*file, "$LSB_DJOB_HOSTFILE"), *file, HostfileForm::kPairs);
  if (const auto hosts = environment.get_filled("LSB_MCPU_HOSTS"))
    return parse_hostfile(*hosts, "$LSB_MCPU_HOSTS", HostfileForm::kPairs);
  return std::nullopt;
}

}  // namespace hv::launcher
