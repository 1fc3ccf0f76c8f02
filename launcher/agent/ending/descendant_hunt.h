// Ends every descendant of this process, also those that have detached themselves. Used by the
// agent and by its guard.
// SPDX-License-Identifier: Apache-2.0
//
// The process is a child subreaper: an orphan becomes its child, so that setsid and double forks
// change nothing, and ECHILD from waitpid proves that no descendant is left. Each pass signals
// everything that the process table shows; a process that was killed forks no more, so that passes
// outrun even a fork bomb. A process that forks and exits all the time is gone before the table has
// been read, but each of its successors is a direct child of this process: direct children are
// listed in one short read and killed first.
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

// In any order; includes zombies.
std::vector<ProcessEntry> own_descendants();

// Reaps every child that has ended; on_end: called for each. False once there is no child at all.
bool reap_children(const std::function<void(pid_t, int status)>& on_end);

// Kills until only processes are left that cannot be killed. Call step() every few milliseconds.
class DescendantHunt {
 public:
  // A process in state D, or of another user, is not waited for any longer than this.
  static constexpr auto kPatience = std::chrono::seconds(2);

  DescendantHunt() : begun_(now()) {}
  // One pass of SIGKILL. True once only processes are left that cannot be killed; the caller reaps.
  bool step();
  // After the hunt: descriptions of the processes that were not waited for.
  const std::vector<std::string>& stuck() const { return stuck_; }
  const std::vector<std::string>& forbidden() const { return forbidden_; }

 private:
  TimePoint begun_;
  std::vector<std::string> stuck_;      // in state D
  std::vector<std::string> forbidden_;  // owned by another user
};

// Stops all descendants (Ctrl-Z), and continues exactly these, not those that had been stopped
// before.
class DescendantPause {
 public:
  void stop();
  void go_on();

 private:
  std::set<std::pair<pid_t, std::uint64_t>> stopped_by_us_;  // pid and start time
};

}  // namespace hv::launcher
