// Threads that yield at accesses to flags in shared memory, so that they meet in orders which idle
// cores hide. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hv::runtime {

// As long as it lives, every thread of this process yields at one access in sixteen, as the seed
// says. One at a time; made and ended while no rank runs.
class SeededYields {
 public:
  explicit SeededYields(std::uint32_t seed);
  SeededYields(const SeededYields&) = delete;
  SeededYields& operator=(const SeededYields&) = delete;
  ~SeededYields();
};

}  // namespace hv::runtime
