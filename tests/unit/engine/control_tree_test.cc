// Tests of who reports to whom.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/control_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace hv::runtime;

namespace {

// Hosts of these many ranks, numbered host by host.
Topology topology_of(const std::vector<int>& hosts, int rank) {
  Topology topology;
  topology.rank = rank;
  topology.size = std::accumulate(hosts.begin(), hosts.end(), 0);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    topology.leaders.push_back(static_cast<int>(topology.host_of.size()));
    topology.host_of.insert(topology.host_of.end(), static_cast<std::size_t>(hosts[host]),
                            static_cast<int>(host));
  }
  return topology;
}

}  // namespace

TEST_CASE("a lone rank is the root and has nobody below") {
  const ControlTree tree = make_control_tree(topology_of({1}, 0));
  CHECK(tree.is_root());
  CHECK(tree.children.empty());
}

TEST_CASE("a host's ranks report to its leader, leaders to rank 0") {
  const std::vector<int> hosts{2, 3};
  CHECK(make_control_tree(topology_of(hosts, 1)).parent == 0);
  CHECK(make_control_tree(topology_of(hosts, 2)).parent == 0);
  CHECK(make_control_tree(topology_of(hosts, 4)).parent == 2);
  const ControlTree root = make_control_tree(topology_of(hosts, 0));
  REQUIRE(root.children.size() == 2);
  CHECK(root.children[0].subtree == std::vector<int>{1});
  CHECK(root.children[1].rank == 2);
  CHECK(root.children[1].subtree == std::vector<int>{2, 3, 4});
}

TEST_CASE("beyond the fanout leaders report to leaders, and every rank is below the root once") {
  const std::vector<int> hosts(40, 2);
  for (const int fanout : {2, 3, 16}) {
    CAPTURE(fanout);
    const ControlTree root = make_control_tree(topology_of(hosts, 0), fanout);
    CHECK(root.children.size() == static_cast<std::size_t>(fanout) + 1);
    std::vector<int> below;
    for (const auto& child : root.children)
      below.insert(below.end(), child.subtree.begin(), child.subtree.end());
    std::sort(below.begin(), below.end());
    std::vector<int> everyone(79);
    std::iota(everyone.begin(), everyone.end(), 1);
    CHECK(below == everyone);
  }
}

TEST_CASE("parent and child agree on each other") {
  const std::vector<int> hosts{1, 4, 2, 1, 3};
  for (int rank = 1; rank < 11; ++rank) {
    const ControlTree own = make_control_tree(topology_of(hosts, rank), 2);
    const ControlTree parent = make_control_tree(topology_of(hosts, own.parent), 2);
    const auto is_own = [rank](const ControlTree::Child& child) { return child.rank == rank; };
    CHECK(std::count_if(parent.children.begin(), parent.children.end(), is_own) == 1);
  }
}
