// StallWatch: reports that ranks wait for others, at the times of a StallSchedule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/rendezvous/stall_schedule.h"

namespace hv::launcher {

class StallWatch {
 public:
  StallWatch(EventLoop& loop, StallLimits limits,
             std::function<void(const wire::FenceStalled&)> on_stall)
      : loop_(loop), schedule_(limits), on_stall_(std::move(on_stall)) {}
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Call after every change.
  void update(bool has_waiting_rank);
  // Time in which the whole job is stopped does not count.
  void pause(bool is_paused);
  // 0: no rank waits.
  double seconds_waited() const;

 private:
  void await_next();

  EventLoop& loop_;
  StallSchedule schedule_;
  const std::function<void(const wire::FenceStalled&)> on_stall_;
  bool has_waiting_rank_ = false;
  bool is_paused_ = false;
  std::optional<TimePoint> due_;  // timer_ is set, to then
  EventLoop::Timer timer_{};
};

}  // namespace hv::launcher
