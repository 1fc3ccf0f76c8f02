// RankPostMortem: what this host knows about a rank that has failed: its core file, and whether the
// kernel killed it for lack of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/postmortem/memory_kills.h"
#include "launcher/agent/ranks/rank_process.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class RankPostMortem : public AgentService {
 public:
  // Before the ranks start. cgroup: that of the ranks; may be empty.
  void begin(const std::string& cgroup) { kills_.begin(cgroup); }
  // Polls, so that an earlier kill is not taken for the end of a rank that ends later.
  void idle() override { kills_.poll(); }
  // Right after its end. Blocks only to read small files.
  wire::PostMortem of(const RankProcess& rank, const ExitStatus& status,
                      const wire::Launch& launch);

 private:
  MemoryKills kills_;
};

}  // namespace hv::launcher
