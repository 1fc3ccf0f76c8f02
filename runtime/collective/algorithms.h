// The algorithms of collectives that have no header of their own, for the registry to choose from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

std::unique_ptr<Collective> alltoall_streams(CollectiveSetup setup);

std::unique_ptr<Collective> barrier(CollectiveSetup setup);

std::unique_ptr<Collective> broadcast_tree(CollectiveSetup setup);
std::unique_ptr<Collective> broadcast_chain(CollectiveSetup setup);

std::unique_ptr<Collective> reducescatter_pieces(CollectiveSetup setup);

}  // namespace hv::runtime
