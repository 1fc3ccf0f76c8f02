// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/stall_schedule.h"

#include <utility>

namespace hv::launcher {

void StallSchedule::end_wait() {
  since_.reset();
  before_ = Duration::zero();
  next_warning_ = limits_.warning;
  is_end_reported_ = false;
}

void StallSchedule::note_wait(bool counts, TimePoint now) {
  if (counts && !since_) since_ = now;
  if (!counts && since_) before_ += now - *std::exchange(since_, std::nullopt);
}

// Independent of the time: a report that is late is still made.
bool StallSchedule::end_is_next() const {
  return limits_.end > Duration::zero() && !is_end_reported_ &&
         (!warns() || limits_.end <= next_warning_);
}

std::optional<TimePoint> StallSchedule::due() const {
  if (!since_ || (!warns() && !end_is_next())) return std::nullopt;
  return *since_ + (next() - before_);
}

wire::FenceStalled StallSchedule::next_report() {
  const bool is_end = end_is_next();
  const Duration waited = next();
  if (is_end) {
    is_end_reported_ = true;
  } else {
    next_warning_ *= 2;
  }
  return {std::chrono::duration<double>(waited).count(), is_end};
}

}  // namespace hv::launcher
