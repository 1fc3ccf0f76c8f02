// Whether a child's report can be, before anything in it is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/readiness.h"

namespace hv::runtime {

// subtree: the ranks that the sender speaks for, ascending; joined: those that had joined before.
bool is_valid(const Report& report, const std::vector<int>& subtree, const JoinedRanks& joined);

// Whom a report speaks for: a subtree that agrees as a whole is not listed, so that a message does
// not grow with the number of ranks.
// The sender's: one variant of all ranks loses its list, and its first extents, if it has any, come
// in the order of the ranks.
void leave_out_ranks(FreshReport& report, std::size_t subtree_size);
// The receiver's: gives it back. subtree: of the sender, ascending.
void spell_out_ranks(Report& report, const std::vector<int>& subtree);

}  // namespace hv::runtime
