// What the job's own processes use of GPUs, told apart from what others do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "src/wire/inventory.h"

namespace hv::launcher {

// Leaves these processes and their memory out of the inventory. How busy a device is that they
// compute on says nothing of others any more, nor does its memory where theirs is not told: then
// neither is told.
// Pure.
void leave_out(const std::set<std::uint32_t>& pids, wire::Inventory* inventory);
// Those that descend from this process.
void leave_out_descendants(wire::Inventory* inventory);

}  // namespace hv::launcher
