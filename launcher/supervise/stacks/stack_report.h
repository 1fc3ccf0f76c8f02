// Describes where ranks stand: equal stacks are described once, with all ranks that stand there.
// Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   ranks 0-2 on hosts n1, n2 stand in (Python, innermost last):
//       /home/ada/train.py:40 in <module>
//       /home/ada/train.py:31 in step
//       C, innermost first: clock_nanosleep (libc.so.6)
//       another thread, innermost first: /home/ada/loader.py:9 in fetch
//       other threads: 3 idle
//   rank 3 on host n2 stands in (C, innermost last):
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/wire/stacks.h"

namespace hv::launcher {

// The stacks of a process of a rank.
struct StackOfRank {
  std::string host;
  wire::RankStacks stacks;  // reported by its agent
};

constexpr std::size_t kMostFrames = 30;  // of a stack
constexpr std::size_t kMostGroups = 20;

// A text for each group of equal stacks, in the order of their lowest ranks. Further processes of
// ranks come last.
std::vector<std::string> stack_groups(const std::vector<StackOfRank>& stacks);

}  // namespace hv::launcher
