// Where ranks stand, in words: equal stacks are one, with all the ranks that stand there. Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   ranks 0-2 on hosts n1, n2 stand in (Python, innermost last):
//       /home/ada/train.py:40 in <module>
//       /home/ada/train.py:31 in step
//       C: clock_nanosleep (libc.so.6)
//       another thread, innermost first: /home/ada/loader.py:9 in fetch
//       other threads: 3 idle
//   rank 3 on host n2 stands in (C, innermost last):
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/wire/stacks.h"

namespace hv::launcher {

// One process of a rank, as its agent has told it.
struct StackOfRank {
  std::string host;
  wire::RankStacks told;
};

constexpr std::size_t kMostFramesTold = 30;  // of a stack
constexpr std::size_t kMostGroupsTold = 20;

// A text for each group: that of the lowest rank first. Other processes of a rank than its first
// are told behind all those.
std::vector<std::string> stack_groups(const std::vector<StackOfRank>& stacks);

}  // namespace hv::launcher
