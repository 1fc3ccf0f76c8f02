// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/stall_watch.h"

namespace hv::launcher {

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
