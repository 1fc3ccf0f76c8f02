// Reads what an ended process has sent: its end may be noticed before its last messages are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace hv::launcher {

// A limit, because a forked child may go on sending.
constexpr std::size_t kMostLastReads = 256;

// receive: false when there is nothing left to read.
inline void read_last_messages(const std::function<bool()>& receive) {
  for (std::size_t read = 0; read < kMostLastReads; ++read)
    if (!receive()) return;
}

}  // namespace hv::launcher
