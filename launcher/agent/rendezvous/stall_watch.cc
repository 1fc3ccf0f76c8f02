// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/stall_watch.h"

#include <utility>

namespace hv::launcher {

void StallSchedule::nobody_waits() {
  since_.reset();
  before_ = Duration::zero();
  next_warning_ = limits_.warning;
  is_end_told_ = false;
}

void StallSchedule::somebody_waits(bool counts, TimePoint now) {
  if (counts && !since_) since_ = now;
  if (!counts && since_) before_ += now - *std::exchange(since_, std::nullopt);
}

// By what is due, not by what time it is: a word that is late is told all the same.
bool StallSchedule::end_is_next() const {
  return limits_.end > Duration::zero() && !is_end_told_ &&
         (!warns() || limits_.end <= next_warning_);
}

std::optional<TimePoint> StallSchedule::due() const {
  if (!since_ || (!warns() && !end_is_next())) return std::nullopt;
  return *since_ + (next() - before_);
}

wire::FenceStalled StallSchedule::take() {
  const bool is_end = end_is_next();
  const Duration waited = next();
  if (is_end) {
    is_end_told_ = true;
  } else {
    next_warning_ *= 2;
  }
  return {std::chrono::duration<double>(waited).count(), is_end};
}

StallWatch::~StallWatch() {
  if (due_) loop_.cancel(timer_);
}

void StallWatch::look(bool is_anybody_waiting) {
  is_anybody_waiting_ = is_anybody_waiting;
  if (is_anybody_waiting) {
    schedule_.somebody_waits(!is_silence_allowed_, now());
  } else {
    schedule_.nobody_waits();
  }
  await_next();
}

void StallWatch::allow_silence(bool is_allowed) {
  is_silence_allowed_ = is_allowed;
  look(is_anybody_waiting_);
}

double StallWatch::seconds_waited() const {
  return std::chrono::duration<double>(schedule_.waited(now())).count();
}

void StallWatch::await_next() {
  const std::optional<TimePoint> due = schedule_.due();
  if (due == due_) return;
  if (due_) loop_.cancel(timer_);
  due_ = due;
  if (!due) return;
  timer_ = loop_.call_at(*due, [this] {
    due_.reset();
    const wire::FenceStalled stall = schedule_.take();
    await_next();
    on_stall_(stall);
  });
}

}  // namespace hv::launcher
