// What the kernel has ended on this host for want of memory since the job began: by its log, where
// that can be read, and by the count of the cgroup that the ranks are in.
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
  // Before the ranks start. leaf: their own cgroup; empty: none. root is put before every other
  // path.
  void begin(const std::string& leaf, const std::string& root = "");
  // Now and then: a kill of long ago did not end a rank that ends now.
  void poll();
  // Of a rank that has failed, with that status, and not by this agent's hand.
  wire::PostMortem judge(pid_t pid, const ExitStatus& status);

 private:
  void read_log();
  std::optional<std::uint64_t> count() const;
  std::string describe_cgroup(std::uint64_t kills) const;

  UniqueFd log_;  // /dev/kmsg, at what is new
  std::string log_problem_;
  bool log_has_our_pids_ = false;  // those of the log are of the machine's first PID namespace
  std::map<pid_t, std::string> killed_;
  std::vector<std::string> groups_;  // from the one that counts up
  std::uint64_t count_before_ = 0;
  std::uint64_t at_last_poll_ = 0, at_poll_before_ = 0;
};

}  // namespace hv::launcher
