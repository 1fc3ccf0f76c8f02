// Stalls: which tensors have waited for some ranks for too long, told with a growing pause.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/clock.h"

namespace hv::runtime {

// A tensor that some ranks have ready and others not.
struct Waiting {
  std::string name;
  TimePoint since;
  std::vector<std::uint32_t> missing;
};

// Pure but for its memory of what it has told. Told at limit, 2 x limit, 4 x limit, ...
class StallInspector {
 public:
  // limit zero: never tells.
  explicit StallInspector(Duration limit) : limit_(limit) {}

  // When inspect() should be called next, at the earliest; also once nothing is due.
  bool is_due(TimePoint time) const { return limit_ > Duration::zero() && time >= next_look_; }
  TimePoint next_look() const { return limit_ > Duration::zero() ? next_look_ : TimePoint::max(); }
  // All that waits now; returns what must be told.
  std::vector<Waiting> inspect(const std::vector<Waiting>& waiting, TimePoint time);

 private:
  const Duration limit_;
  TimePoint next_look_{};
  std::unordered_map<std::string, Duration> told_;  // the age at which it is told next
};

// "tensor 'w' has waited 61 s for ranks 3,5-7 ..."
std::string stall_words(const Waiting& stall, int size, TimePoint time);

}  // namespace hv::runtime
