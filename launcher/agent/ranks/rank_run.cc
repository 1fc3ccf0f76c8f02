// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/agent/ranks/output_frame.h"
#include "launcher/agent/ranks/rank_starter.h"
#include "launcher/agent/ranks/signal_targets.h"
#include "launcher/facts/process_table.h"
#include "launcher/facts/topology.h"
#include "src/base/clock.h"
#include "src/contract/contract.h"

namespace hv::launcher {
namespace {

constexpr auto kStartTurn = std::chrono::milliseconds(5);

// Opens the rank's result pipe and sets the variable with the number of its end.
Status add_result_pipe(RankEnvironment* environment, RankLaunchSpec* spec) {
  UniqueFd ranks_end;
  const Status status = open_pipe_from_rank(&spec->results, &ranks_end);
  if (!status.ok()) return status;
  environment->set(kResultDescriptor, std::to_string(ranks_end.get()));
  spec->passed.push_back(std::move(ranks_end));
  return status;
}

}  // namespace

RankRun::RankRun(EventLoop& loop, HvrunLink& link, const Environment& environment)
    : environment_(environment), context_{loop, link}, ranks_(loop, kStartTurn) {}

std::optional<wire::Problem> RankRun::accept(wire::Launch launch) {
  RankPrograms found = rank_programs(launch, environment_);
  if (found.problem) return std::move(found.problem);
  launch_ = std::move(launch);
  programs_ = std::move(found);
  std::set<std::uint32_t> numbers;
  for (const wire::LaunchRank& rank : launch_.ranks) numbers.insert(rank.rank);
  ranks_.expect(std::move(numbers));
  return std::nullopt;
}

void RankRun::start(const std::string& cgroup, AddConnections add_connections,
                    std::function<void()> on_stream_end, StartTurns::OnOver on_over) {
  const RankCallbacks callbacks{std::move(on_stream_end),
                                [this](std::uint32_t rank, std::uint32_t bytes) {
                                  context_.link.send(wire::Credit{rank, bytes});
                                }};
  const auto prepare = [this, add = std::move(add_connections)](std::size_t i,
                                                                RankLaunchSpec* spec) {
    const wire::LaunchRank& rank = launch_.ranks[i];
    RankEnvironment environment = programs_.environments.of_rank(rank);
    UniqueFd passed;
    Status status = add(rank.rank, &environment, &passed);
    if (passed) spec->passed.push_back(std::move(passed));
    if (status.ok() && rank.has_result_pipe) status = add_result_pipe(&environment, spec);
    spec->command = rank_command(launch_, rank, environment, programs_.paths[i]);
    return status;
  };
  ranks_.start(context_, launch_, prepare, cgroup, callbacks, std::move(on_over));
}

CoreMask RankRun::cores_of_one_each() const {
  const auto is_bound = [](const wire::LaunchRank& rank) { return !rank.cores.empty(); };
  if (std::none_of(launch_.ranks.begin(), launch_.ranks.end(), is_bound)) return {};
  std::size_t threads_of_core = 1;
  for (const wire::Core& core : read_cores(own_cores(), ""))
    threads_of_core = std::max(threads_of_core, core.threads.size());
  CoreMask cores;
  for (const wire::LaunchRank& rank : launch_.ranks)
    if (rank.cores.size() <= threads_of_core) unite(&cores, mask_of(rank.cores));
  return cores;
}

void RankRun::give_up_unstarted() {
  const std::set<std::uint32_t> unstarted = ranks_.give_up_unstarted();
  const auto end = [this](std::uint32_t rank, RankStream stream) {
    context_.link.send_output(output_end_frame(rank, stream, wall_clock_ns()));
  };
  for (const wire::LaunchRank& rank : launch_.ranks) {
    if (!unstarted.contains(rank.rank)) continue;
    end(rank.rank, RankStream::kStdout);
    if (!launch_.pty) end(rank.rank, RankStream::kStderr);
    if (rank.has_result_pipe) end(rank.rank, RankStream::kResults);
  }
}

void RankRun::send_held_signals() {
  resize(launch_.window);
  for (const auto& [number, first] : std::exchange(held_signals_, {}))
    forward_signal(number, first);
}

// The kernel sends SIGWINCH to the programs there where the size differs.
void RankRun::resize(const wire::WindowSize& size) {
  launch_.window = size;
  for (const auto& rank : ranks_.all())
    if (rank->held_terminal) (void)set_window_size(rank->held_terminal.get(), size);
}

bool RankRun::take_input(const wire::Stdin& input) {
  RankProcess* const rank = ranks_.by_number(input.rank);
  if (!rank || !rank->input) {
    // No rank reads it: hvrun must not wait for its credit.
    context_.link.send(wire::Credit{input.rank, static_cast<std::uint32_t>(input.bytes.size())});
    return true;
  }
  if (!input.bytes.empty() && !rank->input->add(input.bytes)) return false;
  if (input.end) rank->input->end_input();
  return true;
}

void RankRun::add_credit(const wire::Credit& credit) {
  RankProcess* const rank = ranks_.by_number(credit.rank);
  if (!rank) return;
  (credit.is_for_results ? rank->result_credit : rank->credit) += credit.bytes;
  rank->poll_held_streams();
}

// Not noted as the agent's own signal: a rank that dies of the user's signal has failed.
void RankRun::forward_signal(int number, std::size_t first) {
  if (number <= 0 || number >= NSIG) return;
  if (ranks_.is_starting()) {
    std::size_t& have_had_it = held_signals_.emplace(number, first).first->second;
    have_had_it = std::min(have_had_it, first);
    return;
  }
  send_signal(find_signal_targets(read_processes(), ranks_.running(first), number), number,
              context_.link);
}

}  // namespace hv::launcher
