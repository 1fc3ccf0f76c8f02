// Is hvrun still there? Judges the silence of the link; pure, time is passed in.
// SPDX-License-Identifier: Apache-2.0
//
// Any received byte is life. What does not count: silence that hvrun has announced (Ctrl-Z), and
// time in which this process itself stood still (SIGSTOP, a laptop asleep), which shows as a beat
// that comes far too late.
#pragma once

#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class SilenceWatch {
 public:
  SilenceWatch(Duration lost_after, TimePoint now)
      : lost_after_(lost_after), last_heard_(now), last_beat_(now) {}

  // Between two beats; hvrun is pinged with each, so that it hears of us as often.
  Duration interval() const { return wire::ping_interval(lost_after_); }
  void heard(TimePoint now) { last_heard_ = now; }
  void pause(bool paused, TimePoint now) {
    paused_ = paused;
    last_heard_ = now;
  }
  bool is_paused() const { return paused_; }
  // True: the silence has lasted too long.
  bool beat(TimePoint now) {
    const bool stood_still = now - last_beat_ > 2 * interval();
    last_beat_ = now;
    if (stood_still || paused_) last_heard_ = now;
    return now - last_heard_ > lost_after_;
  }

 private:
  Duration lost_after_;
  TimePoint last_heard_;
  TimePoint last_beat_;
  bool paused_ = false;
};

}  // namespace hv::launcher
