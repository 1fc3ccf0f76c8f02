// Sweeper: ends what a lost agent left on this host: every process of this user whose environment
// names the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/clock.h"

namespace hv::launcher {

class Sweeper {
 public:
  // spared: pids that are never ended, whatever their environment says: this agent and its guard.
  Sweeper(std::string job_id, std::set<pid_t> spared);

  // One pass of SIGKILL; call every few milliseconds. True: the pass has found no process that
  // could still end.
  bool step();
  bool is_over() const { return is_over_; }
  const std::vector<std::string>& stuck() const { return stuck_; }

 private:
  std::vector<ProcessEntry> find() const;

  std::string job_id_;
  std::string entry_;  // "HVRUN_JOB_ID=..."
  std::set<pid_t> spared_;
  std::vector<std::string> stuck_;
  TimePoint begun_;
  bool is_over_ = false;
};

}  // namespace hv::launcher
