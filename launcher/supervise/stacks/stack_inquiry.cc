// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_inquiry.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/allocation/host_names.h"
#include "launcher/record/end_text.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kNamedMissing = 16;  // ranks whose stacks are requested
constexpr std::size_t kMostWaitingStalls = 16;
constexpr std::size_t kMostRecorded = 16;  // stalls of a job

}  // namespace

bool StackInquiry::send_requests(std::uint32_t number, const std::vector<int>& ranks) {
  bool is_any_asked = false;
  for (Host& host : job_.members()) {
    host.answers.stacks.withdraw();
    if (!host.has_agent()) continue;
    wire::StackRequest request;
    request.number = number;
    request.timeout_s = std::chrono::duration<double>(kStackTimeout).count();
    for (const int rank : job_.slots.ranks_on(host.id)) {
      const bool is_requested =
          ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      if (is_requested && !job_.slots.of_rank(rank).has_ended())
        request.ranks.push_back(static_cast<std::uint32_t>(rank));
    }
    if (request.ranks.empty()) continue;
    host.answers.stacks.ask(number);
    host.send(request);
    is_any_asked = true;
  }
  return is_any_asked;
}

bool StackInquiry::have_all_answered(std::uint32_t number) const {
  return job_.all_hosts([number](const Host& host) {
    return !host.has_agent() || !host.answers.stacks.is_open(number);
  });
}

StackInquiry::Answer StackInquiry::collect_answer(std::uint32_t number) {
  Answer answer;
  for (Host& host : job_.members()) {
    if (!host.answers.stacks.is_asked(number)) continue;
    if (host.answers.stacks.is_open(number)) {
      answer.missing_hosts.push_back(host.target.name);
      continue;
    }
    for (wire::RankStacks& stacks : host.answers.stacks.reply()->stacks)
      answer.stacks.push_back({host.target.name, std::move(stacks)});
  }
  return answer;
}

asio::awaitable<void> StackInquiry::report(std::string text, std::vector<int> ranks, bool is_end) {
  const std::uint32_t number = ++number_;
  if (!send_requests(number, ranks)) co_return;
  const TimePoint deadline = now() + kStackAnswerTimeout;
  co_await job_.until(
      [this, number, is_end] {
        return have_all_answered(number) || number_ != number || (is_end && job_.stops_at_once());
      },
      deadline, !is_end);
  const bool is_obsolete = is_end ? job_.stops_at_once() : (job_.stop() || job_.stage.is_ending());
  if (number_ != number || is_obsolete) co_return;
  const Answer answer = collect_answer(number);
  if (answer.stacks.empty() && answer.missing_hosts.empty()) co_return;  // all have ended meanwhile
  RecordedStanding standing{std::move(text), stack_groups(answer.stacks)};
  if (!answer.missing_hosts.empty()) {
    standing.groups.push_back("nothing was heard within " + format_duration(kStackAnswerTimeout) +
                              " of ranks on " + named_hosts_text(answer.missing_hosts));
  }
  console_.say(standing_text(standing));
  // The report before the end is always kept: there is at most one.
  if (is_end || job_.standings.size() < kMostRecorded)
    job_.standings.push_back(std::move(standing));
}

asio::awaitable<void> StackInquiry::report_before_end() {
  if (!job_.stage.may_ranks_run() || job_.have_ranks_ended()) co_return;
  co_await report("where the ranks stand:", {}, true);
}

int StackInquiry::first_waiting_rank(const std::vector<int>& missing) const {
  for (int rank = 0; rank < static_cast<int>(job_.slots.count()); ++rank)
    if (!job_.slots.of_rank(rank).has_ended() &&
        std::find(missing.begin(), missing.end(), rank) == missing.end())
      return rank;
  return -1;
}

bool StackInquiry::is_reported(const Stall& stall) const {
  return !stall.missing.empty() &&
         std::all_of(stall.missing.begin(), stall.missing.end(), [&](int rank) {
           const auto reported = reported_.find(rank);
           return reported != reported_.end() && stall.since < reported->second;
         });
}

// Something else ends the job.
bool StackInquiry::is_obsolete() const {
  return job_.stop() || job_.stage.is_ending() || (job_.policy && job_.policy->failed());
}

asio::awaitable<void> StackInquiry::report_stalls() {
  while (!stalls_.empty()) {
    Stall stall = std::move(stalls_.front());
    stalls_.pop_front();
    if (is_obsolete() || is_reported(stall)) continue;
    for (const int rank : stall.missing) reported_[rank] = now();
    std::vector<int> ranks = ranks_to_ask(stall);
    co_await report(std::move(stall.text), std::move(ranks), false);
  }
  is_reporting_ = false;
}

std::vector<int> StackInquiry::ranks_to_ask(const Stall& stall) const {
  std::vector<int> ranks = stall.missing;
  if (ranks.empty()) return ranks;
  ranks.resize(std::min(ranks.size(), kNamedMissing));
  const int waiting = stall.waiting < 0 ? first_waiting_rank(stall.missing) : stall.waiting;
  if (waiting >= 0) ranks.push_back(waiting);
  return ranks;
}

void StackInquiry::add_stall(Stall stall) {
  if (!stall.missing.empty() && !is_reported(stall)) enqueue(std::move(stall));
}

void StackInquiry::enqueue(Stall stall) {
  if (stalls_.size() == kMostWaitingStalls) return;
  stalls_.push_back(std::move(stall));
  if (std::exchange(is_reporting_, true)) return;
  asio::co_spawn(job_.executor, report_stalls(), asio::detached);
}

void StackInquiry::add_tensor_stall(const wire::TensorStalled& stalled) {
  const wire::TensorStall& stall = stalled.stall;
  std::vector<int> missing;
  for (const std::uint32_t rank : stall.missing)
    if (rank < job_.slots.count()) missing.push_back(static_cast<int>(rank));
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty()) return;
  const Duration waited = bounded_seconds(stall.waited_s);
  const std::string more =
      stall.more_missing == 0 ? "" : " and " + std::to_string(stall.more_missing) + " more";
  add_stall({"tensor '" + printable(stall.name) + "' has waited " + format_duration(waited) +
                 " for " + ranges_of("rank", missing) + more +
                 "; where they stand, and one that waits:",
             missing, now() - waited, static_cast<int>(stalled.by)});
}

void StackInquiry::add_call_stall(const wire::CallStalled& stalled) {
  const wire::CallStall& stall = stalled.stall;
  const Duration waited = bounded_seconds(stall.waited_s);
  const std::string text = "rank " + std::to_string(stalled.by) + " has waited over " +
                           format_duration(waited) + " in " + printable(stall.call) +
                           (stall.place.empty() ? "" : " (" + printable(stall.place) + ")");
  if (stall.is_too_long && is_obsolete()) return;
  if (stall.is_too_long)
    return job_.request_stop({StopReason::Kind::kStalled, 0,
                              text + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)",
                              "see above what the other ranks do; a longer time lets them go on"});
  // Who begins to wait while others wait joins their stall.
  const bool is_new = !call_stalled_ || now() - waited >= *call_stalled_;
  call_stalled_ = now();
  if (is_new) enqueue({text + "; where the ranks stand:", {}, now() - waited});
}

}  // namespace hv::launcher
