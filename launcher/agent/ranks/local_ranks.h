// LocalRanks: the processes of the ranks of this host: starting them in turns, finding one by pid
// or number, signals, open streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/agent/ranks/rank_process.h"
#include "launcher/agent/ranks/rank_starter.h"
#include "launcher/agent/ranks/start_turns.h"
#include "src/base/status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

struct RankCallbacks {
  std::function<void()> on_stream_end;
  std::function<void(std::uint32_t rank, std::uint32_t bytes)> on_input_taken;
};

// The command of a rank and the descriptors that it inherits, made right before its start.
struct RankLaunchSpec {
  Command command;
  std::vector<UniqueFd> passed{};
  UniqueFd results{};  // the agent's end of its result pipe; empty: it has none
};
using PrepareLaunch = std::function<Status(std::size_t index, RankLaunchSpec*)>;

class LocalRanks {
 public:
  // turn: how long one turn of starting may occupy the loop.
  LocalRanks(EventLoop& loop, Duration turn) : turns_(loop, turn) {}

  // Before start(): the ranks that will be started.
  void expect(std::set<std::uint32_t> ranks) { unstarted_ = std::move(ranks); }
  // context and launch must live until on_over, which is called unless give_up_unstarted() is
  // called first. On failure the ranks that were started already still run: the caller ends them.
  void start(PumpContext& context, const wire::Launch& launch, PrepareLaunch prepare,
             const std::string& cgroup, const RankCallbacks& callbacks, StartTurns::OnOver on_over);
  void hold_start() { turns_.hold(); }
  void go_on_with_start() { turns_.go_on(); }
  bool is_starting() const { return turns_.is_under_way(); }
  const std::set<std::uint32_t>& unstarted() const { return unstarted_; }
  // Starts no more ranks; returns, once, the ranks that never were.
  std::set<std::uint32_t> give_up_unstarted();

  RankProcess* by_number(std::uint32_t rank) const;
  RankProcess* by_pid(pid_t pid) const;
  const std::vector<std::unique_ptr<RankProcess>>& all() const { return ranks_; }

  // Whether a rank runs or is still to be started.
  bool any_running() const;
  bool any_open_stream() const;
  std::vector<std::uint32_t> pids() const;
  // The own processes of the running ranks from that one on, in the order of their start.
  std::vector<pid_t> running(std::size_t first = 0) const;
  // Notes that this agent sends that signal, so that death by it does not count as a failure.
  void note_signal(int number);
  // Kills a rank that has asked for it; it counts as ended with that exit code.
  void abort(std::uint32_t rank, int code);
  // Ranks that are ending but not reaped, and ranks that have just left the job. left: by rank,
  // when it left, by the wall clock.
  std::vector<std::uint32_t> exiting(const std::map<std::uint32_t, std::int64_t>& left) const;
  // Ranks that are stopped, by SIGSTOP or a debugger.
  std::vector<std::uint32_t> stopped() const;
  // Call when there may be capacity again for output that was held back.
  void poll_held_streams();
  void finish_streams();
  void discard_streams();

 private:
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::set<std::uint32_t> unstarted_;
  StartTurns turns_;
};

}  // namespace hv::launcher
