// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/leftovers.h"

#include <algorithm>

namespace hv::launcher {
namespace {

// nullptr: no known rank.
const Leftovers::Rank* owner_of(const ProcessEntry& process,
                                const std::vector<Leftovers::Rank>& ranks,
                                const Leftovers::EnvironmentOf& environment_of) {
  for (const Leftovers::Rank& rank : ranks)
    if (process.session == rank.pid) return &rank;
  const std::string environment = environment_of(process.pid);
  for (const Leftovers::Rank& rank : ranks)
    if (environ_holds(environment, "HVRUN_RANK=" + std::to_string(rank.number))) return &rank;
  return nullptr;
}

}  // namespace

void Leftovers::note_signalled(const std::vector<ProcessEntry>& processes) {
  for (const ProcessEntry& process : processes) signalled_.insert(key_of(process));
}

std::vector<pid_t> Leftovers::take(const std::vector<ProcessEntry>& own,
                                   const std::vector<Rank>& ranks,
                                   const EnvironmentOf& environment_of, TimePoint until) {
  std::set<pid_t> running;
  for (const Rank& rank : ranks)
    if (rank.is_running) running.insert(rank.pid);
  std::set<pid_t> kept = running;
  for (const ProcessEntry& process : descendants(own, running)) kept.insert(process.pid);
  std::vector<pid_t> taken;
  for (const ProcessEntry& process : own) {
    if (process.is_zombie() || kept.contains(process.pid) || until_.contains(key_of(process)))
      continue;
    const Rank* const owner = running.empty() ? nullptr : owner_of(process, ranks, environment_of);
    if (owner ? owner->is_running : !running.empty()) continue;
    until_[key_of(process)] = until;
    if (!signalled_.contains(key_of(process))) taken.push_back(process.pid);
  }
  return taken;
}

std::set<pid_t> Leftovers::spared(const std::vector<ProcessEntry>& own, TimePoint at,
                                  TimePoint* last) const {
  std::set<pid_t> spared;
  *last = at;
  for (const ProcessEntry& process : own) {
    const auto found = until_.find(key_of(process));
    if (process.is_zombie() || found == until_.end() || found->second <= at) continue;
    spared.insert(process.pid);
    *last = std::max(*last, found->second);
  }
  for (const ProcessEntry& process : descendants(own, spared)) spared.insert(process.pid);
  return spared;
}

}  // namespace hv::launcher
