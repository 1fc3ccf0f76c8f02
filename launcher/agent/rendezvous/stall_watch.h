// StallWatch: tells in time that ranks wait for others, as a StallSchedule says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "launcher/agent/event_loop.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// After how long a wait is told, and ends the job. 0: never.
struct StallLimits {
  Duration warning = Duration::zero();
  Duration end = Duration::zero();
};

// When a wait of ranks for others is told. Pure; time is passed in.
class StallSchedule {
 public:
  explicit StallSchedule(StallLimits limits) : limits_(limits) {}

  // The wait that had begun is over.
  void nobody_waits();
  // Somebody waits; counts: the time from now on is part of the wait, which a stop of the job is
  // not. Called as often as one likes.
  void somebody_waits(bool counts, TimePoint now);
  // Without the time that does not count; 0: nobody waits.
  Duration waited(TimePoint now) const { return before_ + (since_ ? now - *since_ : Duration()); }
  // When there is something to tell, which may be long past where this process stood still.
  std::optional<TimePoint> due() const;
  // What is due then; every word of a wait is told once.
  wire::FenceStalled take();

 private:
  bool warns() const { return limits_.warning > Duration::zero(); }
  bool end_is_next() const;
  Duration next() const { return end_is_next() ? limits_.end : next_warning_; }

  const StallLimits limits_;
  std::optional<TimePoint> since_;  // unless the time does not count now
  Duration before_{};               // how long had been waited then
  Duration next_warning_ = limits_.warning;
  bool is_end_told_ = false;
};

class StallWatch {
 public:
  StallWatch(EventLoop& loop, StallLimits limits,
             std::function<void(const wire::FenceStalled&)> on_stall)
      : loop_(loop), schedule_(limits), on_stall_(std::move(on_stall)) {}
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Called after every change.
  void look(bool is_anybody_waiting);
  // A job that is stopped as a whole waits for nobody.
  void allow_silence(bool is_allowed);
  // 0: nobody waits.
  double seconds_waited() const;

 private:
  void await_next();

  EventLoop& loop_;
  StallSchedule schedule_;
  const std::function<void(const wire::FenceStalled&)> on_stall_;
  bool is_anybody_waiting_ = false;
  bool is_silence_allowed_ = false;
  std::optional<TimePoint> due_;  // timer_ is set, to then
  EventLoop::Timer timer_{};
};

}  // namespace hv::launcher
