// The process sets that a job begins with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/api/context.h"
#include "runtime/include/hvrun/hvrun.h"
#include "src/base/status.h"

namespace hv::runtime {

// What can be told before this rank has met the others.
Status check_first_sets(const hvrun_options& options);

// Adds those of the options, in order, together with every other rank; the first that cannot be
// added is the error.
Status add_first_sets(const hvrun_options& options, Context& context);

}  // namespace hv::runtime
