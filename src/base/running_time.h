// Time as this process has lived it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "src/base/clock.h"

namespace hv {

// The time between two checks counts up to most_at_once: checks come more often than that, so a
// longer time is a stop (Ctrl-Z, SIGSTOP, a laptop asleep), in which this process could do nothing.
class RunningTime {
 public:
  static constexpr Duration kMostAtOnce = std::chrono::seconds(1);

  explicit RunningTime(Duration most_at_once = kMostAtOnce) : most_at_once_(most_at_once) {}

  // In the order of time.
  TimePoint at(TimePoint time) {
    if (last_ != TimePoint{}) missed_ += std::max(Duration::zero(), time - last_ - most_at_once_);
    last_ = time;
    return time - missed_;
  }
  // When the clock says so, if nothing stops meanwhile.
  TimePoint clock_time(TimePoint running) const {
    return running == TimePoint::max() ? running : running + missed_;
  }
  // When a caller that waits for `end`, in running time, has to check the clock again.
  TimePoint next_check(TimePoint end) const {
    return std::min(now() + most_at_once_ / 2, clock_time(end));
  }

 private:
  Duration most_at_once_;
  TimePoint last_{};
  Duration missed_{};
};

}  // namespace hv
