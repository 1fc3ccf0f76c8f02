// The ranks of this host: starting all or none, finding one by pid or number, signalling, what is
// still open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/agent/rank_process.h"
#include "launcher/agent/rank_starter.h"
#include "src/base/status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

struct RankCallbacks {
  std::function<void()> on_stream_end;
  std::function<void(std::uint32_t rank, std::uint32_t bytes)> on_input_taken;
};

class LocalRanks {
 public:
  // On failure those that were started already still run: the caller ends them.
  Status start(PumpRoom& room, const wire::Launch& launch, const std::vector<Command>& commands,
               const std::string& cgroup_procs_file, const RankCallbacks& callbacks);

  RankProcess* by_number(std::uint32_t rank) const;
  RankProcess* by_pid(pid_t pid) const;
  const std::vector<std::unique_ptr<RankProcess>>& all() const { return ranks_; }

  bool any_running() const;
  bool any_open_stream() const;
  std::vector<std::uint32_t> pids() const;
  // Process groups of the ranks that run; every rank leads its own.
  std::set<pid_t> groups() const;
  // Notes that this agent sends that signal, so that an end by it is not taken for a failure.
  void note_signal(int number);
  // Those that are ending but not reaped.
  std::vector<std::uint32_t> on_their_way_out() const;
  // There may be room again for what was held back.
  void look_at_held_streams();
  void finish_streams();
  void discard_streams();

 private:
  std::vector<std::unique_ptr<RankProcess>> ranks_;
};

}  // namespace hv::launcher
