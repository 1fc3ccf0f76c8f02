// MemoryKills: which processes of this host the kernel has killed for lack of memory since the job
// began: from its log, where that is readable, and from the counter of the cgroup of the ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// "Memory cgroup out of memory: Killed process 12 (python3) total-vm:4kB, ...": the pid. Pure.
std::optional<pid_t> killed_process(std::string_view message);
// memory.events of cgroup v2, memory.oom_control of v1. Pure.
std::optional<std::uint64_t> oom_kills(const std::string& events);

class MemoryKills {
 public:
  // Before the ranks start. leaf: their own cgroup; empty: none. root: prefix of every other path.
  void begin(const std::string& leaf, const std::string& root = "");
  // Call regularly: a kill that an earlier poll has seen did not end a rank that ends now.
  void poll();
  // For a rank that has failed with that status, and that this agent did not kill.
  wire::PostMortem judge(pid_t pid, const ExitStatus& status);

 private:
  void read_log();
  std::optional<std::uint64_t> count() const;
  std::string describe_cgroup(std::uint64_t kills) const;

  UniqueFd log_;  // /dev/kmsg, positioned at new messages
  std::string log_problem_;
  bool log_has_our_pids_ = false;  // pids in the log belong to the machine's first PID namespace
  std::map<pid_t, std::string> killed_;
  std::vector<std::string> groups_;  // the one with the counter, and those above it
  std::uint64_t count_before_ = 0;
  std::uint64_t at_last_poll_ = 0, at_poll_before_ = 0;
};

}  // namespace hv::launcher
