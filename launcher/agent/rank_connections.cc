// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_connections.h"

#include <utility>

#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

std::optional<wire::Problem> RankConnections::set_up(EventLoop& loop,
                                                     const wire::SetupRequest& setup) {
  RankSocketCallbacks callbacks{[this](wire::FenceIn fence) { link_.send(fence); },
                                [this](const wire::RankLost& lost) { link_.send(lost); },
                                [this](const wire::FenceStalled& stall) { link_.send(stall); },
                                [this](const wire::TensorStalled& stall) { link_.send(stall); },
                                [this](const wire::CallStalled& stall) { link_.send(stall); }};
  if (auto problem = set_up_host(loop, setup, std::move(callbacks), &host_)) return problem;
  mpi_.limit_waits({bounded_seconds(setup.stalls.warning_s), bounded_seconds(setup.stalls.end_s)});
  return std::nullopt;
}

void RankConnections::expect_ranks() {
  host_.socket->expect(ranks_.unstarted());
  if (host_.request.release_port) host_.held_port.reset();
}

void RankConnections::pass_fence(const wire::FenceOut& out) {
  if (!mpi_.pass(out) && host_.socket) host_.socket->pass_fence(out);
}

void RankConnections::report_death(const wire::RankDied& died) {
  if (host_.socket) host_.socket->report_loss(died.rank, died.reason);
}

void RankConnections::pause_heartbeats(const wire::Silence& silence) {
  if (host_.socket) host_.socket->pause_heartbeats(silence.allowed);
  mpi_.pause_waits(silence.allowed);
  link_.send(wire::SilenceNoted{silence.number});
}

wire::QueryReply RankConnections::answer(const wire::Query& query, bool are_ranks_held) const {
  wire::QueryReply reply;
  reply.number = query.number;
  if (!host_.socket) return reply;
  reply.exiting = ranks_.exiting(host_.socket->reports().left_ns());
  reply.absent = absent_ranks();
  if (!are_ranks_held) reply.stopped = ranks_.stopped();
  reply.waited_s = {host_.socket->seconds_waited(), mpi_.seconds_waited_to_begin(),
                    mpi_.seconds_waited_since()};
  reply.in_pmi = mpi_.beginning(wire::kPmiEpoch);
  reply.in_pmix = mpi_.beginning(wire::kPmixEpoch);
  return reply;
}

wire::StepsReply RankConnections::step_times() const {
  wire::StepsReply reply;
  if (!host_.socket) return reply;
  for (const auto& [rank, times] : host_.socket->reports().step_times())
    reply.ranks.push_back({rank, times});
  return reply;
}

// A rank that has not been started yet is not absent.
std::vector<std::uint32_t> RankConnections::absent_ranks() const {
  std::vector<std::uint32_t> absent = host_.socket->absent();
  std::erase_if(absent, [this](std::uint32_t rank) {
    return ranks_.unstarted().count(rank) > 0 || mpi_.is_waiting(rank);
  });
  return absent;
}

wire::Exited RankConnections::end_rank(const RankProcess& rank, const ExitStatus& status) {
  const MpiEnds mpi_ends = mpi_.rank_ended(rank.rank);
  wire::Exited exited;
  exited.pmi_end = mpi_ends.pmi;
  exited.pmix_end = mpi_ends.pmix;
  exited.rank = rank.rank;
  exited.by_signal = status.by_signal;
  exited.code = static_cast<std::uint32_t>(status.code);
  exited.signal_was_ours =
      status.by_signal && rank.signals_sent.test(static_cast<std::size_t>(status.code));
  exited.core_dumped = status.core_dumped;
  exited.termination.use = rank.ending.use();
  exited.may_hold_text = rank.may_hold_text;
  exited.termination.grace_s = Seconds(rank.ending.killed_after()).count();
  exited.wall_clock_ns = wall_clock_ns();
  const RankStanding standing = host_.socket->rank_ended(rank.rank);
  exited.left_unannounced = standing == RankStanding::kJoined;
  exited.never_joined = standing == RankStanding::kNeverJoined;
  const RankReports& reports = host_.socket->reports();
  exited.step_times = reports.step_times(rank.rank);
  const auto left = reports.left_ns().find(rank.rank);
  if (standing == RankStanding::kLeft && left != reports.left_ns().end())
    exited.left_ns = left->second;
  // Before hvrun reports the failure, and before the search for a core file.
  if (!exited.signal_was_ours && (!status.clean() || standing != RankStanding::kLeft)) {
    host_.socket->report_loss(
        rank.rank, "ended with " + status.text() + exited.standing_words() + ", on this host");
  }
  return exited;
}

}  // namespace hv::launcher
