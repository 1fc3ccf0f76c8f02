// Lanes: how the ranks of several hosts pair up so that every local rank carries a share between
// hosts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ranges>
#include <vector>

#include "runtime/transport/fabric.h"

namespace hv::runtime {

// Lane l joins local rank l of every host; there are as many as the smallest host has ranks.
int lanes_of(const Topology& topology);
// The rank at `lane` of each host, by host.
std::vector<int> lane_ranks(const Topology& topology, int lane);
int host_index(const Topology& topology);
// All of 0 ... count - 1 but `me`, beginning with the next: where each of them goes through the
// others in this order, not all begin with the same one.
inline auto others_from_next(int count, int me) {
  return std::views::iota(1, count) |
         std::views::transform([count, me](int distance) { return (me + distance) % count; });
}

// Channels carry whole words, so that no element is ever cut in two by the end of a channel's
// buffer.
constexpr std::size_t kWordBytes = 8;
constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
}

struct Range {
  std::size_t begin = 0;
  std::size_t size = 0;
};
// Part `index` of `bytes` cut into `parts` at cache lines, so that no two parts share a line.
Range cut(std::size_t bytes, int parts, int index);

}  // namespace hv::runtime
