// LSF: $LSB_DJOB_HOSTFILE has a line for each slot; $LSB_MCPU_HOSTS is hosts, each with its number.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {

std::optional<HostList> hosts_of_lsf(const Environment& environment, const ReadFile& read) {
  if (!environment.has("LSB_JOBID")) return std::nullopt;
  if (const auto file = environment.get_filled("LSB_DJOB_HOSTFILE"))
    return parse_hostfile(read(*file, "$LSB_DJOB_HOSTFILE"), *file, HostfileForm::kPairs);
  if (const auto hosts = environment.get_filled("LSB_MCPU_HOSTS"))
    return parse_hostfile(*hosts, "$LSB_MCPU_HOSTS", HostfileForm::kPairs);
  return std::nullopt;
}

}  // namespace hv::launcher
