// Who reports to whom: a host's ranks to its leader, leaders to leaders, all in the end to rank 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/transport/fabric.h"

namespace hv::runtime {

struct ControlTree {
  int self = 0;
  int size = 1;
  int parent = -1;  // -1: the root, which is rank 0
  struct Child {
    int rank;
    std::vector<int> subtree;  // ascending; the child itself is among them
  };
  std::vector<Child> children;

  bool is_root() const { return parent < 0; }
};

// Of how many ranks this one speaks.
std::size_t subtree_size(const ControlTree& tree);

// fanout: how many leaders report to one leader. 16 keeps 256 hosts within two hops.
constexpr int kLeaderFanout = 16;
ControlTree make_control_tree(const Topology& topology, int fanout = kLeaderFanout);

}  // namespace hv::runtime
