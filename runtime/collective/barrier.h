// The barrier: no rank leaves it before every rank has come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

std::unique_ptr<Collective> barrier(CollectiveSetup setup);

}  // namespace hv::runtime
