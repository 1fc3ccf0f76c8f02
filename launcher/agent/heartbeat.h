// Heartbeat: pings hvrun, and gives it up when nothing has come from it for too long.
// SPDX-License-Identifier: Apache-2.0
//
// Any received byte counts as a heartbeat of hvrun. Two pauses do not count: one that hvrun has
// announced (Ctrl-Z), and time in which this process itself was stopped (SIGSTOP, a suspended
// laptop), which shows as a beat that comes far too late.
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
      : lost_after_(lost_after), last_heard_(now), last_beat_(now) {}

  // Between two beats. hvrun is pinged with each, so that it hears from this agent as often.
  Duration interval() const { return wire::ping_interval(lost_after_); }
  void note_heard(TimePoint now) { last_heard_ = now; }
  void pause(bool is_paused, TimePoint now) {
    is_paused_ = is_paused;
    last_heard_ = now;
  }
  bool is_paused() const { return is_paused_; }
  // True: hvrun has not been heard for too long.
  bool beat(TimePoint now) {
    const bool was_stopped = now - last_beat_ > 2 * interval();
    last_beat_ = now;
    if (was_stopped || is_paused_) last_heard_ = now;
    return now - last_heard_ > lost_after_;
  }

 private:
  Duration lost_after_;
  TimePoint last_heard_;
  TimePoint last_beat_;
  bool is_paused_ = false;
};

class Heartbeat {
 public:
  // on_beat: called with each beat, also when hvrun is lost.
  Heartbeat(EventLoop& loop, HvrunLink& link, std::function<void()> on_beat);
  ~Heartbeat() { loop_.cancel(next_beat_); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // From now on.
  void set_timeout(Duration lost_after);
  void note_heard() { timeout_.note_heard(now()); }
  void pause(bool is_paused) { timeout_.pause(is_paused, now()); }

 private:
  void beat();
  void await_next();

  EventLoop& loop_;
  HvrunLink& link_;
  const std::function<void()> on_beat_;
  HeartbeatTimeout timeout_;
  EventLoop::Timer next_beat_{};
};

}  // namespace hv::launcher
