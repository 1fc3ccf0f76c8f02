// Reports where the core file of a process that a signal has ended is, or why there is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hv::launcher {

struct DeadProcess {
  pid_t pid = 0;
  int signal = 0;
  bool has_dumped = false;
  std::string program{};    // the name by which it was executed
  std::string directory{};  // in which it was started
  std::int64_t died_s = 0;  // wall clock, when its end was noticed
};

// kernel.core_pattern as a pattern for glob(7): properties of the process that are unknown after
// its end become '*'. host: its name. Pure.
std::string core_glob(const std::string& core_pattern, bool core_uses_pid,
                      const DeadProcess& process, const std::string& host);

// Empty where nothing is known. core_limit: RLIMIT_CORE of the ranks. root: prefix of /proc.
std::string describe_core(const DeadProcess& process, std::uint64_t core_limit,
                          const std::string& root = "");

}  // namespace hv::launcher
