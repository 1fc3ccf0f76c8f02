// The algorithms of all collectives but allreduce, as the registry chooses among them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

std::unique_ptr<Collective> allgather_pieces(CollectiveSetup setup);

std::unique_ptr<Collective> alltoall_streams(CollectiveSetup setup);

std::unique_ptr<Collective> barrier(CollectiveSetup setup);

std::unique_ptr<Collective> broadcast_tree(CollectiveSetup setup);
std::unique_ptr<Collective> broadcast_chain(CollectiveSetup setup);

std::unique_ptr<Collective> reducescatter_pieces(CollectiveSetup setup);

}  // namespace hv::runtime
