// SGE and its descendants: $PE_HOSTFILE has a line for each host, with its slots and its queue.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {

std::optional<HostList> hosts_of_sge(const Environment& environment, const ReadFile& read) {
  const auto file = environment.get_filled("PE_HOSTFILE");
  if (!environment.has("JOB_ID") || !file) return std::nullopt;
  return parse_hostfile(read(*file, "$PE_HOSTFILE"), *file, HostfileForm::kQueues);
}

}  // namespace hv::launcher
