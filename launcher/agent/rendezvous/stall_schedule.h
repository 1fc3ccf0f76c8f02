// StallSchedule: when a wait of ranks for others is reported. Pure; time is passed in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// How long ranks wait before that is reported, and before it ends the job. 0: never.
struct StallLimits {
  Duration warning = Duration::zero();
  Duration end = Duration::zero();
};

class StallSchedule {
 public:
  explicit StallSchedule(StallLimits limits) : limits_(limits) {}

  // No rank waits.
  void end_wait();
  // A rank waits. counts: the time from now on belongs to the wait; false while the job is stopped.
  // May be called repeatedly.
  void note_wait(bool counts, TimePoint now);
  // The length of the wait, less time that does not count; 0: no rank waits.
  Duration waited(TimePoint now) const { return before_ + (since_ ? now - *since_ : Duration()); }
  // When the next report is due; may be long past if this process was stopped.
  std::optional<TimePoint> due() const;
  // The report that is due. Each is made once per wait.
  wire::FenceStalled next_report();

 private:
  bool warns() const { return limits_.warning > Duration::zero(); }
  bool end_is_next() const;
  Duration next() const { return end_is_next() ? limits_.end : next_warning_; }

  const StallLimits limits_;
  std::optional<TimePoint> since_;  // empty while the time does not count
  Duration before_{};               // how long ranks had waited before since_
  Duration next_warning_ = limits_.warning;
  bool is_end_reported_ = false;
};

}  // namespace hv::launcher
