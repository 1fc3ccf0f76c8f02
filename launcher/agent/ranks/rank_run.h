// RankRun: the ranks of this host from hvrun's Launch to their end: what they execute, their start,
// and what hvrun sends to them: stdin, credit for output, signals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/ranks/local_ranks.h"
#include "launcher/agent/ranks/output_pump.h"
#include "launcher/agent/ranks/rank_command.h"
#include "src/base/core_mask.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/contract/rank_environment.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class RankRun {
 public:
  // Adds what a rank needs to reach the others and hvrun, right before it is started. passed: a
  // descriptor that the rank inherits for that, if any.
  using AddConnections =
      std::function<Status(std::uint32_t rank, RankEnvironment* environment, UniqueFd* passed)>;

  // environment: the agent's own.
  RankRun(EventLoop& loop, HvrunLink& link, const Environment& environment);

  // Keeps the ranks to start (is_well_formed). A problem: a program is missing on this host, and
  // nothing was kept.
  std::optional<wire::Problem> accept(wire::Launch launch);
  // Starts the ranks in that cgroup (empty: none), turn by turn. on_over: see LocalRanks::start.
  void start(const std::string& cgroup, AddConnections add_connections,
             std::function<void()> on_stream_end, StartTurns::OnOver on_over);
  // Starts no more ranks, and reports the streams of those that never were as ended: hvrun waits
  // for the end of every stream.
  void give_up_unstarted();
  // Call once all ranks have been started: sends the signals that came meanwhile, and the size of
  // their terminals.
  void send_held_signals();

  // False: hvrun has sent far more than it may have in flight.
  [[nodiscard]] bool take_input(const wire::Stdin& input);
  void add_credit(const wire::Credit& credit);
  // Sets the size of all ranks' terminals (--pty); ranks that start later get it, too.
  void resize(const wire::WindowSize& size);
  // Signals the ranks from index `first` on, in the order of their start.
  void forward_signal(int number, std::size_t first = 0);

  const wire::Launch& launch() const { return launch_; }
  // The cores of ranks that are bound to one core each; empty: none is. Others, such as those bound
  // to a NUMA node, may have company.
  CoreMask cores_of_one_each() const;
  LocalRanks& local() { return ranks_; }
  const LocalRanks& local() const { return ranks_; }

 private:
  const Environment& environment_;
  PumpContext context_;
  wire::Launch launch_;
  RankPrograms programs_;
  LocalRanks ranks_;
  // Signals that came while ranks were being started, by number. The value: how many of the first
  // ranks have had it already.
  std::map<int, std::size_t> held_signals_;
};

}  // namespace hv::launcher
