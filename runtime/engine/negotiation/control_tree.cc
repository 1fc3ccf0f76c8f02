// Builds the control tree from where the ranks lie.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/control_tree.h"

#include <algorithm>

namespace hv::runtime {
namespace {

// The parent of each rank. Leader number i reports to leader number (i - 1) / fanout.
std::vector<int> parents_of(const Topology& topology, int fanout) {
  std::vector<int> parents(static_cast<std::size_t>(topology.size), -1);
  for (int rank = 0; rank < topology.size; ++rank) {
    const int host = topology.host_of[static_cast<std::size_t>(rank)];
    const int leader = topology.leaders[static_cast<std::size_t>(host)];
    if (rank != leader) {
      parents[static_cast<std::size_t>(rank)] = leader;
    } else if (host > 0) {
      parents[static_cast<std::size_t>(rank)] =
          topology.leaders[static_cast<std::size_t>((host - 1) / fanout)];
    }
  }
  return parents;
}

}  // namespace

ControlTree make_control_tree(const Topology& topology, int fanout) {
  const std::vector<int> parents = parents_of(topology, fanout);
  ControlTree tree;
  tree.self = topology.rank;
  tree.size = topology.size;
  tree.parent = parents[static_cast<std::size_t>(topology.rank)];
  for (int rank = 0; rank < topology.size; ++rank) {
    // Climbs from each rank until it stands below this one or has passed the root.
    int below = rank;
    while (below >= 0 && parents[static_cast<std::size_t>(below)] != tree.self)
      below = parents[static_cast<std::size_t>(below)];
    if (below < 0) continue;
    const auto child =
        std::find_if(tree.children.begin(), tree.children.end(),
                     [&](const ControlTree::Child& known) { return known.rank == below; });
    if (child == tree.children.end()) {
      tree.children.push_back({below, {rank}});
    } else {
      child->subtree.push_back(rank);
    }
  }
  return tree;
}

std::size_t subtree_size(const ControlTree& tree) {
  std::size_t size = 1;
  for (const ControlTree::Child& child : tree.children) size += child.subtree.size();
  return size;
}

}  // namespace hv::runtime
