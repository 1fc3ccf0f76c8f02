// The list of algorithms, and how one of them comes to carry out a request.
// SPDX-License-Identifier: Apache-2.0
//
// Which one is taken stands in src/contract/algorithms.h; it depends only on what is equal on all
// ranks: the request, where the ranks lie, and rank 0's wishes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/ring_collective.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

// The algorithms of collectives that have no header of their own, for the registry to choose from.
std::unique_ptr<Collective> alltoall_streams(CollectiveSetup setup);
std::unique_ptr<Collective> broadcast_tree(CollectiveSetup setup);
std::unique_ptr<Collective> broadcast_chain(CollectiveSetup setup);
std::unique_ptr<Collective> reducescatter_pieces(CollectiveSetup setup);

struct Algorithm {
  CollectiveKind kind;
  std::string_view collective;  // that name and the next are those of the contract's table
  std::string_view name;
  std::unique_ptr<Collective> (*make)(CollectiveSetup setup);
};
const std::vector<Algorithm>& algorithms();

// What an allreduce does between hosts.
struct CrossAlgorithm {
  std::string_view name;
  std::unique_ptr<CrossStage> (*make)(const CrossTerms& terms);
};
const std::vector<CrossAlgorithm>& cross_algorithms();

// The name in the contract's table; empty for what no backend carries out.
std::string_view contract_name(const CollectiveRequest& request);
JobExtent extent_of(const Topology& topology);
std::unique_ptr<Collective> start_collective(CollectiveSetup setup);
// share_bytes: of a lane's share of the whole tensor, to choose by.
std::unique_ptr<CrossStage> start_cross_stage(const CrossTerms& terms, const CollectiveSetup& setup,
                                              std::size_t share_bytes);

}  // namespace hv::runtime
