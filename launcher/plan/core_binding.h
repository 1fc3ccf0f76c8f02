// Which cores each rank of a host may use, and how many threads it should start. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// A host's cores lie in NUMA nodes. A rank with a GPU belongs to the node near it; the others are
// spread over the nodes in order, or in turn with --map-by numa; where they are fewer than nodes,
// each belongs to several. What a rank gets of its nodes:
//   auto  with a GPU all of them; without, an even share, or all of them where that would be one
//         core; and no binding at all where even that is one core
//   none  nothing is bound
//   core  one core that no other rank has
//   numa  all of one node
//   gpu   all of its GPU's node; a rank without a GPU is an error
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hv::launcher {

enum class BindTo { kAuto, kNone, kCore, kNuma, kGpu };

// "none", "core", "numa", "gpu". none: not understood.
std::optional<BindTo> parse_bind_to(const std::string& text);

struct CoreFacts {
  int node = 0;
  std::vector<int> threads{};  // that may be used
  int package = 0;             // socket, as the system numbers it
};

struct BoundRank {
  std::vector<int> threads{};  // in order; empty: not bound
  std::vector<int> nodes{};    // NUMA nodes of those; empty: not bound
  int own_cores = 1;           // that are its own where all ranks are busy
};

// cores: of one host, in the order of their nodes. usable: so many may be busy at once. gpu_nodes:
// by rank, the node near its GPU; none: it has no GPU, or the system does not tell. Throws
// Error(kUsage); host: for the message.
std::vector<BoundRank> bind_ranks(BindTo bind_to, bool in_turn, const std::vector<CoreFacts>& cores,
                                  int usable, const std::vector<std::optional<int>>& gpu_nodes,
                                  const std::string& host);

}  // namespace hv::launcher
