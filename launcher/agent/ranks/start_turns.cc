// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/start_turns.h"

#include <utility>

namespace hv::launcher {

void StartTurns::begin(std::size_t count, StartOne start_one, OnOver on_over) {
  count_ = count;
  start_one_ = std::move(start_one);
  on_over_ = std::move(on_over);
  under_way_ = true;
  if (!held_) take_turn();
}

void StartTurns::hold() {
  held_ = true;
  stop_timer();
}

void StartTurns::go_on() {
  if (std::exchange(held_, false) && under_way_) take_turn();
}

void StartTurns::break_off() {
  under_way_ = false;
  stop_timer();
}

// Starts at least one rank per turn, also where that takes longer than a turn.
void StartTurns::take_turn() {
  for (const TimePoint until = now() + turn_; next_ < count_;) {
    if (const Status status = start_one_(next_); !status.ok()) return finish(status);
    ++next_;
    if (now() >= until) break;
  }
  if (next_ == count_) return finish(Status::success());
  next_turn_ = loop_.call_at(TimePoint::min(), [this] {
    next_turn_.reset();
    take_turn();
  });
}

void StartTurns::finish(const Status& status) {
  under_way_ = false;
  on_over_(status);
}

void StartTurns::stop_timer() {
  if (next_turn_) loop_.cancel(*std::exchange(next_turn_, std::nullopt));
}

}  // namespace hv::launcher
