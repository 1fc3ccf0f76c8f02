// Sweeper: ends what a lost agent left on this host: that agent itself, should it stand still, its
// guard, and every process of this user whose environment names the job; removes the directory of
// PythonStart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// pid 0 where there is no such process.
wire::ProcessId process_id(pid_t pid);
// The text of /proc/PID/cgroup; empty where it cannot be read.
std::string cgroup_of(pid_t pid);

// The orphans that may be left of a lost agent whose guard is gone, too: the children of init, or
// of another reaper of orphans, that have started since the agent did. A session whose leader is
// older than the agent is another's: each rank has a session of its own. Pure.
std::vector<ProcessEntry> orphans_since(const std::vector<ProcessEntry>& all,
                                        std::uint64_t start_time);

class Sweeper {
 public:
  // spared: pids that are never ended, whatever their environment says: this agent and its guard.
  Sweeper(std::string job_id, std::uint32_t host_id, std::set<pid_t> spared, wire::LostAgent lost);

  // One pass of SIGKILL; call every few milliseconds. True: the pass has found no process that
  // could still end.
  bool step();
  bool is_over() const { return is_over_; }
  const std::vector<std::string>& stuck() const { return stuck_; }
  // Where agent and guard were gone at once, and no cgroup held the job: orphans_since() the agent
  // that are this user's, in the agent's cgroup. A daemon that has cleared its environment is one
  // of them.
  std::vector<std::string> may_remain() const;

 private:
  std::vector<ProcessEntry> find() const;
  bool is_lost_agent(const ProcessEntry& process) const;

  std::string job_id_;
  std::uint32_t host_id_;
  std::string entry_;  // "HVRUN_JOB_ID=..."
  std::set<pid_t> spared_;
  wire::LostAgent lost_;
  bool were_both_gone_;
  std::vector<std::string> stuck_;
  TimePoint begun_;
  bool is_over_ = false;
};

}  // namespace hv::launcher
