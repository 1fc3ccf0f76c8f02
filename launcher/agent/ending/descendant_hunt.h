// Ending every descendant of this process, whatever it did to get away. Used by the agent and by
// its guard.
// SPDX-License-Identifier: Apache-2.0
//
// The process is a child subreaper: whoever loses its parent becomes its child, so that setsid and
// double forks change nothing, and waitpid's ECHILD proves that nothing is left. Each pass signals
// everything that the process table shows; a process that was killed forks no more, so that passes
// outrun even a fork bomb. One that forks and exits all the time is gone before the table has been
// read, but it becomes our direct child each time: those are asked for in one short read and killed
// first.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/clock.h"

namespace hv::launcher {

// In any order; those that wait to be reaped, too.
std::vector<ProcessEntry> own_descendants();

// Signals every process below this one, except those in spared and what is below them.
// whole_groups: groups that get it at once by kill(-group), so that none of their members is
// missed.
void signal_descendants(int number, const std::set<pid_t>& whole_groups,
                        const std::set<pid_t>& spared = {});

// Reaps every child that has ended; on_end: called for each. False once there is no child at all.
bool reap_children(const std::function<void(pid_t, int status)>& on_end);

// Killing until nothing is left but what cannot be killed. step() once per few milliseconds.
class DescendantHunt {
 public:
  // After this long a process in state D, or of another user, is no longer waited for.
  static constexpr auto kPatience = std::chrono::seconds(2);

  DescendantHunt() : begun_(now()) {}
  // One pass of SIGKILL. True once only hopeless processes are left; reaping is the caller's.
  bool step();
  // After the hunt: what was not waited for, in words.
  const std::vector<std::string>& stuck() const { return stuck_; }
  const std::vector<std::string>& forbidden() const { return forbidden_; }

 private:
  TimePoint begun_;
  std::vector<std::string> stuck_;      // state D
  std::vector<std::string> forbidden_;  // of another user
};

// Stopping everything (Ctrl-Z) and letting exactly that go on again, not what had been stopped
// before.
class DescendantPause {
 public:
  void stop();
  void go_on();
  bool is_stopped() const { return stopped_; }

 private:
  bool stopped_ = false;
  std::set<std::pair<pid_t, std::uint64_t>> stopped_by_us_;  // pid and start time
};

}  // namespace hv::launcher
