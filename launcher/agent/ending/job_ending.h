// JobEnding: how the job on this host is stopped for a while (Ctrl-Z) and ended: SIGTERM, then
// SIGKILL after the grace, until nothing is left.
// SPDX-License-Identifier: Apache-2.0
//
//   idle -> terminating (SIGTERM sent) -> killing (SIGKILL, again and again) -> over
//   idle -> expecting -> terminating            a scheduler is about to send SIGTERM
//   idle, expecting -> killing                  the grace is 0
//   terminating -> sparing -> killing           first for all but what ranks have just left behind
//   terminating, sparing -> over                every process has ended
//
// SIGTERM goes to each rank's program (signal_targets.h, rank_ending.h). When a rank's own process
// has ended, what it leaves behind gets SIGTERM, and the rest of the grace, but no less than
// Leftovers::kLeastGrace.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/ending/leftovers.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/ranks/local_ranks.h"

namespace hv::launcher {

class JobEnding {
 public:
  // Whether the agent sends SIGTERM, or a scheduler has sent it to every process that runs now, or
  // is about to. Then the agent waits 2 s for its own; it sends SIGTERM if none comes, and at once
  // if the grace is shorter.
  enum class Sigterm : std::uint8_t { kToSend, kSent, kExpected };

  // on_over: everything is gone, or only what cannot be ended is left.
  JobEnding(EventLoop& loop, HvrunLink& link, LocalRanks& ranks, std::function<void()> on_over);
  ~JobEnding();
  JobEnding(const JobEnding&) = delete;
  JobEnding& operator=(const JobEnding&) = delete;

  void use_cgroup(const JobCgroup* cgroup) { cgroup_ = cgroup; }
  // Stops every process of the job and the start of more, or lets them go on. Without effect once
  // the end has begun.
  void pause(bool is_stopped);
  // Once begun, a shorter grace shortens it.
  void begin(Duration grace, Sigterm sigterm = Sigterm::kToSend);
  // The agent has got SIGTERM, and so has every process of the job. Without effect unless expected.
  void note_sigterm();
  // The grace is this, if that is longer and SIGKILL has not been sent.
  void lengthen(Duration grace);
  // Children have been reaped, ranks among them perhaps.
  void note_children_ended();
  // The last child has been reaped. Ends a begun end, without effect before.
  void note_nothing_left();

  // Descriptions of the processes that could not be killed: in state D, or of another user.
  std::vector<std::string> stuck() const;
  std::vector<std::string> forbidden() const;

 private:
  enum class State : std::uint8_t { kIdle, kExpecting, kTerminating, kSparing, kKilling, kOver };

  void terminate(Sigterm sigterm);
  void end_expectation(Sigterm sigterm);
  bool note_ended_ranks();
  void terminate_leftovers(const std::vector<ProcessEntry>& own, TimePoint until);
  void watch_programs();
  void end_grace();
  void kill();
  void continue_hunt();
  void finish();
  void set_timer(TimePoint when, std::function<void()> act);

  EventLoop& loop_;
  HvrunLink& link_;
  LocalRanks& ranks_;
  DescendantPause pause_;
  std::function<void()> on_over_;
  const JobCgroup* cgroup_ = nullptr;
  State state_ = State::kIdle;
  TimePoint begun_{}, grace_end_{};  // SIGTERM, and the end of the grace as was requested
  Leftovers leftovers_{};
  TimePoint killing_since_{};
  std::optional<DescendantHunt> hunt_;  // while killing, and after it
  std::optional<EventLoop::Timer> timer_;
  std::optional<EventLoop::Timer> program_timer_;
};

}  // namespace hv::launcher
