// StallSchedule: when a wait of ranks for others is reported. Pure; time is passed in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// After how long a wait is reported, and ends the job. 0: never.
struct StallLimits {
  Duration warning = Duration::zero();
  Duration end = Duration::zero();
};

class StallSchedule {
 public:
  explicit StallSchedule(StallLimits limits) : limits_(limits) {}

  // The wait that had begun is over.
  void end_wait();
  // Somebody waits; counts: the time from now on is part of the wait, which a stop of the job is
  // not. Called as often as one likes.
  void note_wait(bool counts, TimePoint now);
  // Without the time that does not count; 0: nobody waits.
  Duration waited(TimePoint now) const { return before_ + (since_ ? now - *since_ : Duration()); }
  // When there is something to tell, which may be long past where this process stood still.
  std::optional<TimePoint> due() const;
  // What is due then; every word of a wait is told once.
  wire::FenceStalled take();

 private:
  bool warns() const { return limits_.warning > Duration::zero(); }
  bool end_is_next() const;
  Duration next() const { return end_is_next() ? limits_.end : next_warning_; }

  const StallLimits limits_;
  std::optional<TimePoint> since_;  // unless the time does not count now
  Duration before_{};               // how long had been waited then
  Duration next_warning_ = limits_.warning;
  bool is_end_reported_ = false;
};

}  // namespace hv::launcher
