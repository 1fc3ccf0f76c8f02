// Birth: from the process's environment to the parts of a context.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/api/context.h"
#include "runtime/include/hvrun/hvrun.h"
#include "src/base/status.h"

namespace hv::runtime {

// Reads the contract; asks the host's agent, or makes a store of its own for a rank that is alone.
// Each call counts this process's contexts up, and with them its epoch, unless the ranks meet by
// the launcher's own exchange: so all ranks must call as often. Blocks while the agent answers.
// communicator: as in hvrun_options; where hvrun has started the ranks, of all of them.
Status parts_of_process(ContextParts* parts, const void* communicator = nullptr);

// What is wrong with the process sets that a job begins with, as far as can be told before this
// rank has met the others.
Status check_first_sets(const hvrun_options& options);

// Adds those of the options, in order, together with every other rank; the first that cannot be
// added is the error.
Status add_first_sets(const hvrun_options& options, Context& context);

}  // namespace hv::runtime
