// Whom a report speaks for: a subtree that agrees as a whole is not listed, so that a message does
// not grow with the number of ranks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/engine/control_messages.h"

namespace hv::runtime {

// The sender's: one variant of all ranks loses its list, and its first extents, if it has any, come
// in the order of the ranks.
void leave_out_ranks(FreshReport& report, std::size_t subtree_size);
// The receiver's: gives it back. subtree: of the sender, ascending.
void spell_out_ranks(Report& report, const std::vector<int>& subtree);

}  // namespace hv::runtime
