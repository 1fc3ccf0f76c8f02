// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/lanes.h"

#include <algorithm>

#include "runtime/transport/placement.h"

namespace hv::runtime {

int lanes_of(const Topology& topology) {
  int lanes = topology.size;
  for (int host = 0; host < static_cast<int>(topology.leaders.size()); ++host)
    lanes = std::min(lanes, static_cast<int>(ranks_of_host(topology, host).size()));
  return lanes;
}

std::vector<int> lane_ranks(const Topology& topology, int lane) {
  std::vector<int> ranks;
  for (int host = 0; host < static_cast<int>(topology.leaders.size()); ++host)
    ranks.push_back(ranks_of_host(topology, host)[static_cast<std::size_t>(lane)]);
  return ranks;
}

int host_index(const Topology& topology) {
  return topology.host_of[static_cast<std::size_t>(topology.rank)];
}

Range cut(std::size_t bytes, int parts, int index) {
  constexpr std::size_t kLine = 64;
  const auto count = static_cast<std::size_t>(parts);
  const std::size_t width = ((bytes + count - 1) / count + kLine - 1) / kLine * kLine;
  const std::size_t begin = std::min(bytes, static_cast<std::size_t>(index) * width);
  return {begin, std::min(bytes - begin, width)};
}

}  // namespace hv::runtime
