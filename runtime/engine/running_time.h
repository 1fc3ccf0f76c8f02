// Time as this process has lived it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "src/base/clock.h"

namespace hv::runtime {

// Of the time between two looks at most kMostAtOnce counts: looks come every second, so what is
// longer is a stop (Ctrl-Z, a laptop asleep), in which nothing could become ready and nothing has
// stalled.
class RunningTime {
 public:
  static constexpr Duration kMostAtOnce = std::chrono::seconds(5);

  // In the order of time.
  TimePoint at(TimePoint time) {
    if (last_ != TimePoint{}) missed_ += std::max(Duration::zero(), time - last_ - kMostAtOnce);
    last_ = time;
    return time - missed_;
  }
  // When the clock says so, if nothing stops meanwhile.
  TimePoint clock_time(TimePoint running) const {
    return running == TimePoint::max() ? running : running + missed_;
  }

 private:
  TimePoint last_{};
  Duration missed_{};
};

}  // namespace hv::runtime
