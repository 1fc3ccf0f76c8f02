// The broadcast algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

std::unique_ptr<Collective> broadcast_tree(CollectiveSetup setup);
std::unique_ptr<Collective> broadcast_chain(CollectiveSetup setup);

}  // namespace hv::runtime
