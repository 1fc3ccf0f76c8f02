// What somebody who has ended said before: it may not have been read yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace hv::launcher {

// A child that it left may go on for ever.
constexpr std::size_t kMostLastReads = 256;

// receive: false where nothing is there to read any more.
inline void read_last_messages(const std::function<bool()>& receive) {
  for (std::size_t read = 0; read < kMostLastReads; ++read)
    if (!receive()) return;
}

}  // namespace hv::launcher
