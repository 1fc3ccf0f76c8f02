// Which GPU use on this host is not caused by the job itself, once its ranks run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "src/wire/inventory.h"

namespace hv::launcher {

// Reduces each device's use to the processes that certainly do not belong to the job, and their
// memory. Utilisation, and memory without a process, may be caused by ranks that have just ended.
// Pure.
void leave_to_others(const std::set<std::uint32_t>& own, wire::Inventory* inventory);

// For a job whose ranks have been started. Descendants of this process may have ended before the
// driver's answer is read: so they are collected when the query begins, and again with its answer.
class OwnGpuUse {
 public:
  OwnGpuUse();
  void leave_out_of(wire::Inventory* inventory);

 private:
  void add_descendants();

  const bool knows_numbers_;  // the pids of the driver mean processes of this namespace
  std::set<std::uint32_t> own_;
};

}  // namespace hv::launcher
