// The allgather algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

std::unique_ptr<Collective> allgather_pieces(CollectiveSetup setup);

}  // namespace hv::runtime
