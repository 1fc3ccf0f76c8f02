// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/agent/ranks/output_frame.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr auto kStartTurn = std::chrono::milliseconds(5);

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
    const Status status = add(rank.rank, &environment, &spec->passed);
    spec->command = rank_command(launch_, rank, environment, programs_.paths[i]);
    return status;
  };
  ranks_.start(context_, launch_, prepare, cgroup, callbacks, std::move(on_over));
}

void RankRun::give_up_unstarted() {
  const std::uint8_t streams = launch_.pty ? 1 : 2;
  for (const std::uint32_t rank : ranks_.give_up_unstarted()) {
    for (std::uint8_t stream = 1; stream <= streams; ++stream)
      context_.link.send_output(output_end_frame(rank, stream, wall_clock_ns()));
  }
}

void RankRun::send_held_signals() {
  for (const auto& [number, first] : std::exchange(held_signals_, {}))
    forward_signal(number, first);
}

bool RankRun::take_input(const wire::Stdin& input) {
  RankProcess* const rank = ranks_.by_number(input.rank);
  if (!rank || !rank->input) {
    // No rank reads it: hvrun must not wait for its credit.
    context_.link.send(wire::Credit{input.rank, static_cast<std::uint32_t>(input.bytes.size())});
    return true;
  }
  if (!input.bytes.empty() && !rank->input->add(input.bytes)) return false;
  if (input.end) rank->input->end();
  return true;
}

void RankRun::add_credit(const wire::Credit& credit) {
  RankProcess* const rank = ranks_.by_number(credit.rank);
  if (!rank) return;
  rank->credit += credit.bytes;
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
  for (const pid_t group : ranks_.groups(first)) ::kill(-group, number);
}

}  // namespace hv::launcher
