// Errors of GPUs that the driver has written to the kernel's log, as Xid numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/wire/inventory.h"

namespace hv::launcher {

struct XidReading {
  std::map<std::string, std::vector<wire::Xid>> by_address{};  // "0000:3b:00.0": the newest last
  std::string problem{};                                       // why the log could not be read
};

// Of /dev/kmsg, which many hosts keep for root. What was written before the driver was last loaded
// does not count. uptime_us: the clock of the log's stamps. root: as in read_nvml.
XidReading read_xids(std::int64_t uptime_us, const std::string& root = "");

}  // namespace hv::launcher
