// What each rank shall execute: its environment put together, its program found on this host. Pure
// but for the checks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.h"
#include "src/process/command.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Every rank has a program, and cores within bounds. What follows is only for messages that are.
bool is_well_formed(const wire::Launch& launch);

// Later ones win: the host's own values of launch.host_variables, launch.environment, the
// program's, the rank's contract. PYTHONUNBUFFERED=1 unless set; PWD is the working directory.
// own: this agent's environment.
std::vector<std::string> environment_of_rank(const wire::Launch& launch,
                                             const wire::LaunchRank& rank, const Environment& own);

// The program of every rank, found on this host; or what this host lacks, and what to try.
struct RankPrograms {
  std::vector<std::string> paths;
  std::optional<wire::Problem> problem;
};
RankPrograms rank_programs(const wire::Launch& launch, const Environment& own);

// Put together when the rank is started, not before: the environments of thousands of ranks would
// make the agent big, and every fork of it slow.
Command rank_command(const wire::Launch& launch, const wire::LaunchRank& rank,
                     const Environment& own, const std::string& program);

}  // namespace hv::launcher
