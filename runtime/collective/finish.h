// What a reduction does to a folded value before it is stored. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/collective/collective.h"
#include "runtime/device/kernels.h"

namespace hv::runtime {

// The request's postscale and divisor.
Finish finish_of(const CollectiveRequest& request);

}  // namespace hv::runtime
