// RankPostMortem: what this host knows about a rank that has failed: its core file, whether the
// kernel killed it for lack of memory, and whether its program may have held text back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/postmortem/memory_kills.h"
#include "launcher/agent/ranks/local_ranks.h"
#include "launcher/agent/ranks/rank_process.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class RankPostMortem : public AgentService {
 public:
  explicit RankPostMortem(const ServiceContext& agent) : ranks_(agent.ranks) {}

  // Before the ranks start. cgroup: that of the ranks; may be empty.
  void begin(const std::string& cgroup) { kills_.begin(cgroup); }
  // Polls: an earlier kill must not be taken for the cause of a later end, and what a process has
  // executed is not known any more once it has ended.
  void idle() override;
  // Call right after the rank has ended. Blocks only to read small files.
  wire::PostMortem examine(const RankProcess& rank, const ExitStatus& status,
                           const wire::Launch& launch);

 private:
  LocalRanks& ranks_;
  MemoryKills kills_;
};

}  // namespace hv::launcher
