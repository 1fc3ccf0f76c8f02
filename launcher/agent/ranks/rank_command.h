// The command of each rank: its environment composed, its program found on this host. Pure but for
// the checks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.h"
#include "src/contract/rank_environment.h"
#include "src/process/command.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Every rank has a number of its own, a program, and cores within bounds. All functions below take
// only such messages.
bool is_well_formed(const wire::Launch& launch);

// The environments of a Launch's ranks, by the layers of src/contract/rank_environment.h. The part
// that the ranks of one program have in common is composed once; the rest when a rank is started:
// the environments of thousands of ranks would make the agent big, and each fork slow.
class RankEnvironments {
 public:
  RankEnvironments() = default;
  // own: this agent's environment.
  RankEnvironments(const wire::Launch& launch, const Environment& own);
  RankEnvironment of_rank(const wire::LaunchRank& rank) const;
  // PATH in of_rank(), found without composing the rest; kDefaultPath where there is none.
  std::string path_of_rank(const wire::LaunchRank& rank) const;

 private:
  std::vector<RankEnvironment> of_programs_;
};

// The program of every rank, found on this host; or what this host lacks, or does not take, and
// what to try.
struct RankPrograms {
  RankEnvironments environments;
  std::vector<std::string> paths{};  // in the order of the Launch's ranks
  std::optional<wire::Problem> problem{};
};
RankPrograms rank_programs(const wire::Launch& launch, const Environment& own);

Command rank_command(const wire::Launch& launch, const wire::LaunchRank& rank,
                     const RankEnvironment& environment, const std::string& program);

}  // namespace hv::launcher
