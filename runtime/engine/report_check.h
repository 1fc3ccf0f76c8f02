// Whether a child's report can be, before anything in it is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/engine/control_messages.h"
#include "runtime/engine/joined_ranks.h"

namespace hv::runtime {

// subtree: the ranks that the sender speaks for, ascending; joined: those that had joined before.
bool is_valid(const Report& report, const std::vector<int>& subtree, const JoinedRanks& joined);

}  // namespace hv::runtime
