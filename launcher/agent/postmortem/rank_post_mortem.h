// What can be found out on this host about a rank that has failed: its core, and whether the kernel
// ended it for want of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "launcher/agent/postmortem/memory_kills.h"
#include "launcher/agent/ranks/rank_process.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// One that a signal has ended.
struct DeadProcess {
  pid_t pid = 0;
  int signal = 0;
  bool has_dumped = false;
  std::string program{};    // as it was executed
  std::string directory{};  // in which it was started
  std::int64_t died_s = 0;  // wall clock, as it was noticed
};

// kernel.core_pattern as a pattern for glob(7): what nobody can know of the process any more
// becomes '*'. host: its name. Pure.
std::string core_glob(const std::string& core_pattern, bool core_uses_pid,
                      const DeadProcess& process, const std::string& host);

// Where its core is, or why there is none, in words; empty where there is nothing to say.
// core_limit: RLIMIT_CORE with which ranks start. root is put before /proc.
std::string core_words(const DeadProcess& process, std::uint64_t core_limit,
                       const std::string& root = "");

class RankPostMortem {
 public:
  // Before the ranks start. cgroup: the ranks' own; may be empty.
  void begin(const std::string& cgroup) { kills_.begin(cgroup); }
  // Now and then, while ranks run.
  void look() { kills_.look(); }
  // Right after its end. Does not block but for reading small files.
  wire::PostMortem of(const RankProcess& rank, const ExitStatus& status,
                      const wire::Launch& launch);

 private:
  MemoryKills kills_;
};

}  // namespace hv::launcher
