// Placement: how many ranks each host has, and which numbers they have. Pure functions.
// SPDX-License-Identifier: Apache-2.0
//
//   1. share out   how many ranks each host gets: --map-by, its slots, --oversubscribe
//   2. number      which ranks those are: --rank-by
// A rankfile replaces both steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hv::launcher {

enum class MapBy {
  kSlot,     // a host's slots, then the next host's
  kNode,     // one for each host in turn
  kGpu,      // as kSlot, with a slot for each GPU, or for --gpus-per-rank of them
  kNuma,     // as kSlot; a host's ranks go round its NUMA nodes
  kPerNode,  // so many on each host: ppr:N:node, --npernode
};

enum class RankBy {
  kPlacement,  // in the order of step 1
  kSlot,       // all of a host, then all of the next
  kNode,       // one for each host in turn
};

struct MapRule {
  MapBy by = MapBy::kSlot;
  int per_node = 0;  // kPerNode
};

// "slot", "node", "gpu", "numa", "ppr:N:node". none: not understood.
std::optional<MapRule> parse_map_by(const std::string& text);
std::optional<RankBy> parse_rank_by(const std::string& text);

// How many ranks a host can run.
struct HostCapacity {
  int slots = 1;
  std::optional<int> most{};  // with oversubscription; none: any number
};

// Number of ranks of a job without -np.
long natural_ranks(const MapRule& rule, const std::vector<HostCapacity>& hosts);
// The most ranks that hosts can run: their slots; with oversubscription, `most`.
long most_ranks(const MapRule& rule, const std::vector<HostCapacity>& hosts, bool oversubscribe);

// The host of each rank, by rank. ranks: at most most_ranks().
std::vector<int> place_ranks(const MapRule& rule, RankBy rank_by,
                             const std::vector<HostCapacity>& hosts, int ranks, bool oversubscribe);

}  // namespace hv::launcher
