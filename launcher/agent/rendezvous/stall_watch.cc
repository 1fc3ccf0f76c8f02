// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/stall_watch.h"

namespace hv::launcher {

StallWatch::~StallWatch() {
  if (due_) loop_.cancel(timer_);
}

void StallWatch::update(bool has_waiting_rank) {
  has_waiting_rank_ = has_waiting_rank;
  if (has_waiting_rank) {
    schedule_.note_wait(!is_paused_, now());
  } else {
    schedule_.end_wait();
  }
  await_next();
}

void StallWatch::pause(bool is_paused) {
  is_paused_ = is_paused;
  update(has_waiting_rank_);
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
    const wire::FenceStalled stall = schedule_.next_report();
    await_next();
    on_stall_(stall);
  });
}

}  // namespace hv::launcher
