// Reads a caller's request, of this or an older size, into an operation; every malformed field is
// an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/engine/operation.h"
#include "runtime/include/hvrun/hvrun.h"
#include "src/base/status.h"

namespace hv::runtime {

// size: ranks of the job, for the bounds of root; the set has its own (session.h). Pure.
Status read_request(const hvrun_request* request, int size, OperationPtr* operation);

}  // namespace hv::runtime
