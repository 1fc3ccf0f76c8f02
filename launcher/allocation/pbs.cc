// PBS and Torque: $PBS_NODEFILE has a line for each slot.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {

std::optional<HostList> hosts_of_pbs(const Environment& environment, const ReadFile& read) {
  const auto file = environment.get_filled("PBS_NODEFILE");
  if (!environment.has("PBS_JOBID") || !file) return std::nullopt;
  return parse_hostfile(read(*file, "$PBS_NODEFILE"), *file, HostfileForm::kNames);
}

}  // namespace hv::launcher
