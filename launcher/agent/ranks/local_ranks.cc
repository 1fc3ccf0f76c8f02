// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/local_ranks.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "src/base/clock.h"

namespace hv::launcher {

void LocalRanks::start(PumpContext& context, const wire::Launch& launch, PrepareLaunch prepare,
                       const std::string& cgroup, const RankCallbacks& callbacks,
                       StartTurns::OnOver on_over) {
  StartOptions options;
  options.pty = launch.pty;
  options.window = launch.window;
  options.credit_bytes = launch.credit_bytes;
  options.pipe_bytes = pipe_bytes_for(launch.ranks.size());
  options.cgroup = cgroup;
  options.umask = launch.umask;
  const auto start_one = [this, &context, &launch, prepare = std::move(prepare), options,
                          callbacks](std::size_t i) {
    std::unique_ptr<RankProcess> rank;
    const std::uint32_t number = launch.ranks[i].rank;
    const StreamCallbacks streams{
        callbacks.on_stream_end,
        [taken = callbacks.on_input_taken, number](std::uint32_t bytes) { taken(number, bytes); }};
    RankLaunchSpec spec;
    if (Status status = prepare(i, &spec); !status.ok()) return status;
    StartOptions own = options;
    for (const UniqueFd& passed : spec.passed) own.passed_fds.push_back(passed.get());
    Status status = start_rank(context, spec.command, launch.ranks[i], own, streams, &rank);
    if (!status.ok()) return status;
    if (spec.results) {
      rank->result_credit = wire::Result::kFirstCredit;
      rank->outputs.push_back(std::make_unique<OutputPump>(
          context, std::move(spec.results), number, RankStream::kResults, &rank->result_credit,
          callbacks.on_stream_end));
    }
    ranks_.push_back(std::move(rank));
    unstarted_.erase(number);
    return status;
  };
  turns_.begin(launch.ranks.size(), start_one, std::move(on_over));
}

std::set<std::uint32_t> LocalRanks::give_up_unstarted() {
  turns_.break_off();
  return std::exchange(unstarted_, {});
}

RankProcess* LocalRanks::by_number(std::uint32_t rank) const {
  for (const auto& candidate : ranks_) {
    if (candidate->rank == rank) return candidate.get();
  }
  return nullptr;
}

RankProcess* LocalRanks::by_pid(pid_t pid) const {
  for (const auto& candidate : ranks_) {
    if (candidate->pid == pid && candidate->is_running()) return candidate.get();
  }
  return nullptr;
}

bool LocalRanks::any_running() const {
  return is_starting() || std::any_of(ranks_.begin(), ranks_.end(),
                                      [](const auto& rank) { return rank->is_running(); });
}

bool LocalRanks::any_open_stream() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& rank) { return rank->has_open_streams(); });
}

std::vector<std::uint32_t> LocalRanks::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& rank : ranks_) pids.push_back(static_cast<std::uint32_t>(rank->pid));
  return pids;
}

std::vector<pid_t> LocalRanks::running(std::size_t first) const {
  std::vector<pid_t> running;
  for (std::size_t i = first; i < ranks_.size(); ++i) {
    if (ranks_[i]->is_running()) running.push_back(ranks_[i]->pid);
  }
  return running;
}

void LocalRanks::note_signal(int number) {
  for (const auto& rank : ranks_) {
    if (rank->is_running() && number > 0 && number < NSIG)
      rank->signals_sent.set(static_cast<std::size_t>(number));
  }
}

void LocalRanks::abort(std::uint32_t rank, int code) {
  RankProcess* const process = by_number(rank);
  if (process == nullptr || !process->is_running() || process->aborts_with) return;
  process->aborts_with = code;
  ::kill(-process->pid, SIGKILL);
}

// Nanoseconds that a program takes to end after its leave notice, if it sends that at its end:
// workers are joined, memory is freed. Other programs may run on for any time.
constexpr std::int64_t kEndAfterLeave = 10'000'000'000;

std::vector<std::uint32_t> LocalRanks::exiting(
    const std::map<std::uint32_t, std::int64_t>& left) const {
  std::vector<std::uint32_t> exiting;
  for (const auto& rank : ranks_) {
    if (!rank->is_running()) continue;
    const auto process = read_process(rank->pid);
    const auto status = read_file("/proc/" + std::to_string(rank->pid) + "/status");
    const auto notice = left.find(rank->rank);
    const bool has_just_left =
        notice != left.end() && wall_clock_ns() - notice->second < kEndAfterLeave;
    if (has_just_left || !process || is_on_its_way_out(*process, status.value_or("")))
      exiting.push_back(rank->rank);
  }
  return exiting;
}

std::vector<std::uint32_t> LocalRanks::stopped() const {
  std::vector<std::uint32_t> stopped;
  for (const auto& rank : ranks_) {
    if (!rank->is_running()) continue;
    const auto process = read_process(rank->pid);
    if (process && process->is_standing_still()) stopped.push_back(rank->rank);
  }
  return stopped;
}

void LocalRanks::poll_held_streams() {
  for (const auto& rank : ranks_) rank->poll_held_streams();
}

void LocalRanks::finish_streams() {
  for (const auto& rank : ranks_) {
    for (const auto& output : rank->outputs) output->finish();
  }
}

void LocalRanks::discard_streams() {
  for (const auto& rank : ranks_) {
    for (const auto& output : rank->outputs) output->discard();
  }
}

}  // namespace hv::launcher
