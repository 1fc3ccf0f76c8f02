// StartTurns: starts many ranks in turns of a few milliseconds, between which the event loop does
// its other work.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a host may take a minute to start, and hvrun gives up an agent without a heartbeat.
// An event between two turns finds some ranks running and others not started. Ctrl-Z holds the
// start: no turn is taken until it is released. It may come before the start begins.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "launcher/agent/event_loop.h"
#include "src/base/clock.h"
#include "src/base/status.h"

namespace hv::launcher {

class StartTurns {
 public:
  using StartOne = std::function<Status(std::size_t index)>;
  using OnOver = std::function<void(const Status& status)>;

  StartTurns(EventLoop& loop, Duration turn) : loop_(loop), turn_(turn) {}
  ~StartTurns() { stop_timer(); }
  StartTurns(const StartTurns&) = delete;
  StartTurns& operator=(const StartTurns&) = delete;

  // Call once; takes the first turn at once. on_over: all ranks have been started, or one has
  // failed and later ones never will be; not called after break_off().
  void begin(std::size_t count, StartOne start_one, OnOver on_over);
  void hold();
  void go_on();
  // Starts no more ranks.
  void break_off();

  // Begun, and on_over not yet called: also while it is held.
  bool is_under_way() const { return under_way_; }

 private:
  void take_turn();
  void finish(const Status& status);
  void stop_timer();

  EventLoop& loop_;
  Duration turn_;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  StartOne start_one_;
  OnOver on_over_;
  bool under_way_ = false;
  bool held_ = false;
  std::optional<EventLoop::Timer> next_turn_;
};

}  // namespace hv::launcher
