// Seconds that came from outside, as a duration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "src/base/clock.h"

namespace hv {

// Negative and no number: 0. At most 1e6 s, which is longer than any wait and overflows no clock.
inline Duration bounded_seconds(double count) {
  constexpr double kLongest = 1e6;
  const double bounded = count > 0 ? std::min(count, kLongest) : 0;  // a NaN compares false
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bounded));
}

}  // namespace hv
