// Leftovers: the processes that ranks leave behind, and how long they may run. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// A process belongs to a rank if it descends from the rank's own process, or is in its session, or
// if its environment names the rank. A daemon may be an orphan, which is the agent's child, with a
// session of its own and an environment that it has overwritten: that belongs to no known rank, and
// counts as left behind once no rank runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/clock.h"

namespace hv::launcher {

class Leftovers {
 public:
  // Between SIGTERM and SIGKILL, however little is left of the grace.
  static constexpr auto kLeastGrace = std::chrono::milliseconds(500);

  struct Rank {
    std::uint32_t number = 0;
    pid_t pid = 0;
    bool is_running = false;
  };
  // The text of /proc/PID/environ; empty where it may not be read.
  using EnvironmentOf = std::function<std::string(pid_t)>;

  // These processes have got SIGTERM from elsewhere.
  void note_signalled(const std::vector<ProcessEntry>& processes);
  // own: the agent's descendants. Returns those that get SIGTERM because their rank has ended since
  // the last call. until: they may run until then, whatever the grace.
  std::vector<pid_t> take(const std::vector<ProcessEntry>& own, const std::vector<Rank>& ranks,
                          const EnvironmentOf& environment_of, TimePoint until);
  // Those of own that may still run, with their descendants. *last: when the last of them is to
  // end.
  std::set<pid_t> spared(const std::vector<ProcessEntry>& own, TimePoint at, TimePoint* last) const;

 private:
  using Key = std::pair<pid_t, std::uint64_t>;  // pid and start time
  static Key key_of(const ProcessEntry& process) { return {process.pid, process.start_time}; }

  std::set<Key> signalled_;
  std::map<Key, TimePoint> until_;
};

}  // namespace hv::launcher
