// An error that the end of a peer looks like, too. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "src/base/clock.h"

namespace hv::runtime {

// Such an error is held back, so that whoever knows whose end it was can say so first: then all
// survivors are told the same.
class PeersEnd {
 public:
  // From the first call on for 3 s.
  bool may_yet_be_told() {
    constexpr std::chrono::seconds kUntilItIsTold{3};
    first_trouble_ = std::min(first_trouble_, now());
    return now() < first_trouble_ + kUntilItIsTold;
  }

 private:
  TimePoint first_trouble_ = TimePoint::max();
};

}  // namespace hv::runtime
