// What can be found out on this host about a rank that has failed: its core, and whether the kernel
// ended it for want of memory.
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
  // Before the ranks start. cgroup: the ranks' own; may be empty.
  void begin(const std::string& cgroup) { kills_.begin(cgroup); }
  // A kill of long ago is not the end of a rank that ends now.
  void idle() override { kills_.poll(); }
  // Right after its end. Does not block but for reading small files.
  wire::PostMortem of(const RankProcess& rank, const ExitStatus& status,
                      const wire::Launch& launch);

 private:
  MemoryKills kills_;
};

}  // namespace hv::launcher
