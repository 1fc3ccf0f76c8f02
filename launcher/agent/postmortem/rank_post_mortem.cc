// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/rank_post_mortem.h"

#include <sys/resource.h>

#include <algorithm>

#include "launcher/agent/postmortem/core_file.h"
#include "launcher/agent/postmortem/held_text.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string core_of(const RankProcess& rank, const ExitStatus& status, const wire::Launch& launch) {
  const auto found =
      std::find_if(launch.ranks.begin(), launch.ranks.end(),
                   [&rank](const wire::LaunchRank& each) { return each.rank == rank.rank; });
  if (found == launch.ranks.end()) return "";
  const wire::Program& program = launch.programs[found->program];
  struct rlimit limit {};
  const bool is_known = ::getrlimit(RLIMIT_CORE, &limit) == 0;
  return describe_core({rank.pid, status.code, status.core_dumped, program.argv[0],
                        program.directory, wall_clock_ns() / kNanosecondsPerSecond},
                       is_known ? limit.rlim_cur : 1);
}

}  // namespace

void RankPostMortem::idle() {
  kills_.poll();
  for (const auto& rank : ranks_.all())
    if (rank->is_running()) rank->may_hold_text = may_hold_text(rank->pid);
}

wire::PostMortem RankPostMortem::examine(const RankProcess& rank, const ExitStatus& status,
                                         const wire::Launch& launch) {
  if (status.clean()) return {};
  wire::PostMortem found = kills_.judge(rank.pid, status);
  if (status.by_signal) found.core = core_of(rank, status, launch);
  return found;
}

}  // namespace hv::launcher
