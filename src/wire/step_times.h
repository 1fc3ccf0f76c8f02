// StepTimes: what a rank has measured of its training's steps, in all: how long, and waiting for
// what. Told by the program, so nothing may rest on it before is_plausible() has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hv::wire {

struct StepTimes {
  std::uint64_t steps = 0;                 // 0: none was measured, and all else is 0, too
  std::uint64_t nanoseconds = 0;           // that they took together
  std::uint64_t data_nanoseconds = 0;      // of it: waiting for data
  std::uint64_t exchange_nanoseconds = 0;  // waiting for other ranks and what they send
  std::uint64_t data_waits = 0;  // so many; 0: no loader was seen, so the rest is not all computing
  void fields(auto& a) {
    a(steps, nanoseconds, data_nanoseconds, exchange_nanoseconds, data_waits);
  }
  std::uint64_t compute_nanoseconds() const {
    return nanoseconds - data_nanoseconds - exchange_nanoseconds;
  }
  // Totals only grow.
  bool may_become(const StepTimes& later) const {
    return later.steps >= steps && later.nanoseconds >= nanoseconds &&
           later.data_nanoseconds >= data_nanoseconds &&
           later.exchange_nanoseconds >= exchange_nanoseconds && later.data_waits >= data_waits;
  }
  // Parts that are no more than the whole, and a whole that a process can have lived.
  bool is_plausible() const {
    constexpr std::uint64_t kMostNanoseconds = 1ull << 62;  // 146 years
    if (steps == 0)
      return nanoseconds == 0 && data_nanoseconds == 0 && exchange_nanoseconds == 0 &&
             data_waits == 0;
    return nanoseconds <= kMostNanoseconds && data_nanoseconds <= nanoseconds &&
           exchange_nanoseconds <= nanoseconds - data_nanoseconds &&
           (data_waits > 0 || data_nanoseconds == 0);
  }
};

}  // namespace hv::wire
