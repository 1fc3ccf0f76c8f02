// Drives a collective to its end in the calling thread, for programs without an engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/collective/collective.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

// Advances and sleeps until the collective is done or has failed.
Status run_blocking(Collective& collective, Fabric& fabric);

}  // namespace hv::runtime
