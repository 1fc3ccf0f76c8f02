// JobEnding: how the job on this host is stopped for a while (Ctrl-Z) and ended: SIGTERM to all,
// SIGKILL after the grace, until nothing is left.
// SPDX-License-Identifier: Apache-2.0
//
//   idle -> terminating (SIGTERM sent) -> killing (SIGKILL, again and again) -> over
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/ranks/local_ranks.h"

namespace hv::launcher {

class JobEnding {
 public:
  // on_over: everything is gone, or only what cannot be ended is left.
  JobEnding(EventLoop& loop, LocalRanks& ranks, std::function<void()> on_over);
  ~JobEnding();
  JobEnding(const JobEnding&) = delete;
  JobEnding& operator=(const JobEnding&) = delete;

  void use_cgroup(const JobCgroup* cgroup) { cgroup_ = cgroup; }
  // Stops every process of the job and the start of more, or lets them go on. Without effect once
  // the end has begun.
  void pause(bool is_stopped);
  // Once begun, a shorter grace shortens it.
  void begin(Duration grace);
  // The last child has been reaped.
  void note_nothing_left();

  bool has_begun() const { return begun_; }
  bool is_over() const { return over_; }
  const std::vector<std::string>& stuck() const { return stuck_; }
  const std::vector<std::string>& forbidden() const { return forbidden_; }

 private:
  void terminate();
  void kill();
  void hunt_on();
  void set_timer(TimePoint when, std::function<void()> act);

  EventLoop& loop_;
  LocalRanks& ranks_;
  DescendantPause pause_;
  std::function<void()> on_over_;
  const JobCgroup* cgroup_ = nullptr;
  bool begun_ = false;
  bool over_ = false;
  TimePoint kill_at_ = TimePoint::max();
  TimePoint killing_since_{};
  std::optional<DescendantHunt> hunt_;
  std::optional<EventLoop::Timer> timer_;
  std::vector<std::string> stuck_;
  std::vector<std::string> forbidden_;
};

}  // namespace hv::launcher
