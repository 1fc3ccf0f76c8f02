// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_inquiry.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/record/end_words.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kNamedMissing = 16;  // of whom stacks are asked
constexpr std::size_t kMostWaitingStalls = 16;
constexpr std::size_t kMostRecorded = 16;  // of a job's stalls

}  // namespace

bool StackInquiry::send_requests(std::uint32_t number, const std::vector<int>& ranks) {
  bool is_anybody_asked = false;
  for (HostState& host : job_.hosts) {
    host.stacks_asked = 0;
    if (!host.is_there()) continue;
    wire::StackRequest request;
    request.number = number;
    request.timeout_s = std::chrono::duration<double>(kStackTimeout).count();
    for (const int rank : host.ranks) {
      const bool is_wanted =
          ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      if (is_wanted && !job_.ranks[static_cast<std::size_t>(rank)].ended)
        request.ranks.push_back(static_cast<std::uint32_t>(rank));
    }
    if (request.ranks.empty()) continue;
    host.stacks.reset();
    host.stacks_asked = number;
    host.link->send(request);
    is_anybody_asked = true;
  }
  return is_anybody_asked;
}

bool StackInquiry::have_all_answered(std::uint32_t number) const {
  return job_.all_hosts([number](const HostState& host) {
    return host.stacks_asked != number || !host.is_there() ||
           (host.stacks && host.stacks->number == number);
  });
}

StackInquiry::Answer StackInquiry::take_answer(std::uint32_t number) {
  Answer answer;
  for (HostState& host : job_.hosts) {
    if (host.stacks_asked != number) continue;
    if (!host.stacks || host.stacks->number != number) {
      answer.silent.push_back(host.target.name);
      continue;
    }
    for (wire::RankStacks& told : host.stacks->stacks)
      answer.stacks.push_back({host.target.name, std::move(told)});
    host.stacks.reset();
  }
  return answer;
}

asio::awaitable<void> StackInquiry::tell(std::string what, std::vector<int> ranks, bool is_end) {
  const std::uint32_t number = ++number_;
  if (!send_requests(number, ranks)) co_return;
  const TimePoint deadline = now() + kStackAnswerTimeout;
  co_await job_.until(
      [this, number, is_end] {
        return have_all_answered(number) || number_ != number || (is_end && job_.stop_at_once);
      },
      deadline, !is_end);
  const bool is_past_caring = is_end ? job_.stop_at_once : (job_.stop || job_.ending);
  if (number_ != number || is_past_caring) co_return;
  const Answer answer = take_answer(number);
  if (answer.stacks.empty() && answer.silent.empty()) co_return;  // all have ended meanwhile
  RecordedStanding standing{std::move(what), stack_groups(answer.stacks)};
  if (!answer.silent.empty()) {
    standing.groups.push_back("nothing was heard within " + seconds_text(kStackAnswerTimeout) +
                              " of ranks on " + word_for(answer.silent.size(), "host") + " " +
                              join_some(answer.silent));
  }
  say_(standing_text(standing));
  // The end's is always told: at most once.
  if (is_end || job_.standings.size() < kMostRecorded)
    job_.standings.push_back(std::move(standing));
}

asio::awaitable<void> StackInquiry::tell_before_end() {
  if (!job_.ranks_may_run || job_.ranks_ended()) co_return;
  co_await tell("where the ranks stand:", {}, true);
}

int StackInquiry::first_that_waits(const std::vector<int>& missing) const {
  for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    const int number = static_cast<int>(rank);
    if (!job_.ranks[rank].ended &&
        std::find(missing.begin(), missing.end(), number) == missing.end())
      return number;
  }
  return -1;
}

bool StackInquiry::is_told(const Stall& stall) const {
  return std::all_of(stall.missing.begin(), stall.missing.end(), [&](int rank) {
    const auto told = told_.find(rank);
    return told != told_.end() && stall.since < told->second;
  });
}

asio::awaitable<void> StackInquiry::tell_of_stalls() {
  while (!stalls_.empty()) {
    Stall stall = std::move(stalls_.front());
    stalls_.pop_front();
    if (job_.stop || job_.ending || (job_.policy && job_.policy->failed()) || is_told(stall))
      continue;
    for (const int rank : stall.missing) told_[rank] = now();
    if (stall.waiting < 0) stall.waiting = first_that_waits(stall.missing);
    std::vector<int> ranks = std::move(stall.missing);
    ranks.resize(std::min(ranks.size(), kNamedMissing));
    if (stall.waiting >= 0) ranks.push_back(stall.waiting);
    co_await tell(std::move(stall.what), std::move(ranks), false);
  }
  is_asking_ = false;
}

void StackInquiry::stalled(Stall stall) {
  if (stall.missing.empty() || is_told(stall) || stalls_.size() == kMostWaitingStalls) return;
  stalls_.push_back(std::move(stall));
  if (std::exchange(is_asking_, true)) return;
  asio::co_spawn(job_.executor, tell_of_stalls(), asio::detached);
}

void StackInquiry::tensor_stalled(const wire::TensorStalled& told) {
  const wire::TensorStall& stall = told.stall;
  std::vector<int> missing;
  for (const std::uint32_t rank : stall.missing)
    if (rank < job_.ranks.size()) missing.push_back(static_cast<int>(rank));
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty()) return;
  const Duration waited = bounded_seconds(stall.waited_s);
  const std::string more =
      stall.more_missing == 0 ? "" : " and " + std::to_string(stall.more_missing) + " more";
  stalled({"tensor '" + printable(stall.name) + "' has waited " + seconds_text(waited) + " for " +
               ranges_of("rank", missing) + more + "; where they stand, and one that waits:",
           missing, now() - waited, static_cast<int>(told.by)});
}

}  // namespace hv::launcher
