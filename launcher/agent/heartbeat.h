// Heartbeat: pings hvrun, and gives it up when nothing has come from it for too long.
// SPDX-License-Identifier: Apache-2.0
//
// Any received byte counts as a heartbeat of hvrun. Two pauses do not count: one that hvrun has
// announced (Ctrl-Z), and time in which this process itself was stopped (SIGSTOP, a suspended
// laptop), which makes a check come far too late.
#pragma once

#include <functional>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Judges the time since hvrun was last heard. Pure; time is passed in.
class HeartbeatTimeout {
 public:
  HeartbeatTimeout(Duration lost_after, TimePoint now)
      : lost_after_(lost_after), last_heard_(now), last_check_(now) {}

  // Starts anew with another timeout. An announced pause goes on.
  void set(Duration lost_after, TimePoint now) {
    lost_after_ = lost_after;
    last_heard_ = last_check_ = now;
  }
  // Between two checks. Each sends a ping, so hvrun hears from this agent as often.
  Duration interval() const { return wire::ping_interval(lost_after_); }
  void note_heard(TimePoint now) { last_heard_ = now; }
  void pause(bool is_paused, TimePoint now) {
    is_paused_ = is_paused;
    last_heard_ = now;
  }
  bool is_paused() const { return is_paused_; }
  // True: hvrun has not been heard for too long.
  bool check(TimePoint now) {
    const bool was_stopped = now - last_check_ > 2 * interval();
    last_check_ = now;
    if (was_stopped || is_paused_) last_heard_ = now;
    return now - last_heard_ > lost_after_;
  }

 private:
  Duration lost_after_;
  TimePoint last_heard_;
  TimePoint last_check_;
  bool is_paused_ = false;
};

class Heartbeat {
 public:
  // on_interval: called at each interval, also when hvrun is lost.
  Heartbeat(EventLoop& loop, HvrunLink& link, std::function<void()> on_interval);
  ~Heartbeat() { loop_.cancel(next_check_); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // hvrun counts as lost when nothing has come from it for that long.
  void set_timeout(Duration lost_after);
  void note_heard() { timeout_.note_heard(now()); }
  void pause(bool is_paused) { timeout_.pause(is_paused, now()); }

 private:
  void check_and_ping();
  void await_next();

  EventLoop& loop_;
  HvrunLink& link_;
  const std::function<void()> on_interval_;
  HeartbeatTimeout timeout_;
  EventLoop::Timer next_check_{};
};

}  // namespace hv::launcher
