// Who uses GPUs beside this job, once it runs there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "src/wire/inventory.h"

namespace hv::launcher {

// Leaves of each device's use what is surely others': their processes, and the memory of these.
// How busy the device was, and memory that nobody is told to have, may be of ranks that have just
// ended. Pure.
void leave_to_others(const std::set<std::uint32_t>& own, wire::Inventory* inventory);

// Of a job whose ranks have been started. What descends from this process may have ended before the
// driver's answer is read: it is looked for when the question is asked, and once more then.
class OwnGpuUse {
 public:
  OwnGpuUse();
  void leave_out_of(wire::Inventory* inventory);

 private:
  void add_descendants();

  const bool knows_numbers_;  // the driver's, of processes
  std::set<std::uint32_t> own_;
};

}  // namespace hv::launcher
