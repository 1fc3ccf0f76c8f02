// Who was last, summed up.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/straggler.h"

#include <algorithm>
#include <chrono>

#include "runtime/engine/negotiation/mismatch.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMostRanksTold = 3;
// At the job's end less than this is not worth a word.
constexpr std::chrono::seconds kLeastTold{5};
constexpr int kLeastPercent = 10;
// A peer's number is bounded before it is computed with.
constexpr std::uint64_t kLongestWaitUs = 1'000'000'000'000;

// None: its first wait has not ended.
std::string times_text(std::uint64_t times) {
  if (times == 0) return "not there yet";
  return count_of(times, "time");
}

}  // namespace

void WaitLedger::charge(std::uint32_t rank, TimePoint since, TimePoint until) {
  if (until <= std::max(since, charged_until_)) return;
  charge_open(rank, since, until);
  ++by_rank_[rank].times;
}

void WaitLedger::charge_open(std::uint32_t rank, TimePoint since, TimePoint until) {
  const TimePoint begin = std::max(since, charged_until_);
  if (until <= begin) return;
  charged_until_ = until;
  total_ += until - begin;
  Entry& entry = by_rank_[rank];
  entry.waited += until - begin;
  if (entry.waited <= worst_) return;
  worst_ = entry.waited;
  worst_rank_ = rank;
}

WaitLedger WaitLedger::since(const WaitLedger& earlier) const {
  WaitLedger rest = *this;
  rest.total_ -= earlier.total_;
  for (const auto& [rank, entry] : earlier.by_rank_) {
    rest.by_rank_[rank].waited -= entry.waited;
    rest.by_rank_[rank].times -= entry.times;
  }
  return rest;
}

std::vector<std::pair<std::uint32_t, WaitLedger::Entry>> WaitLedger::sorted() const {
  std::vector<std::pair<std::uint32_t, Entry>> ranks(by_rank_.begin(), by_rank_.end());
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto& a, const auto& b) { return a.second.waited > b.second.waited; });
  return ranks;
}

void Arrivals::child_says(int child, const LatestArrival& latest) { told_[child] = latest; }

void Arrivals::completed(int source, TimePoint since, TimePoint time) {
  auto rank = static_cast<std::uint32_t>(source);
  const auto told = source == self_ ? told_.end() : told_.find(source);
  if (told != told_.end() && told->second.waited_us > 0) {
    rank = told->second.rank;
    since = std::min(
        since, time - std::chrono::microseconds(std::min(told->second.waited_us, kLongestWaitUs)));
  }
  ledger_.charge(rank, since, time);
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(time - since).count();
  if (waited > 0 && static_cast<std::uint64_t>(waited) > latest_.waited_us)
    latest_ = {static_cast<std::uint64_t>(waited), rank};
}

LatestArrival Arrivals::take_latest() {
  return std::exchange(latest_, {0, static_cast<std::uint32_t>(self_)});
}

std::string StragglerReport::periodic(const WaitLedger& ledger, const std::vector<int>& members,
                                      TimePoint time) {
  seen_ = time;
  if (begun_ == TimePoint{}) begun_ = told_ = time;
  if (!is_due(time)) return {};
  const WaitLedger recent = ledger.since(at_told_);
  Duration elapsed = time - std::exchange(told_, time);
  // A wait of which nobody knew for whom began before: what has passed since the last one counts.
  if (recent.total() > elapsed) elapsed = time - std::max(begun_, at_told_.charged_until());
  at_told_ = ledger;
  return recent.total() > Duration::zero() ? straggler_words(recent, members, elapsed) : "";
}

std::string StragglerReport::final(const WaitLedger& ledger,
                                   const std::vector<int>& members) const {
  const Duration elapsed = seen_ - begun_;
  if (ledger.total() < kLeastTold || ledger.total() * 100 < elapsed * kLeastPercent) return {};
  return straggler_words(ledger, members, elapsed);
}

std::string straggler_words(const WaitLedger& ledger, const std::vector<int>& members,
                            Duration elapsed) {
  // A peer's wait may have begun before this rank counted.
  std::string words = "tensors waited " + format_duration(ledger.total()) + " of " +
                      format_duration(std::max(elapsed, ledger.total())) +
                      " for the last rank to have them";
  Duration others = ledger.total();
  const auto ranks = ledger.sorted();
  for (std::size_t i = 0; i < ranks.size() && i < kMostRanksTold; ++i) {
    const auto& [rank, entry] = ranks[i];
    if (entry.waited <= Duration::zero()) break;
    words += (i == 0 ? ": rank " : ", rank ") +
             std::to_string(job_rank(members, static_cast<int>(rank))) + " " +
             format_duration(entry.waited) + " (" + times_text(entry.times) + ")";
    others -= entry.waited;
  }
  if (ranks.size() > kMostRanksTold) words += ", others " + format_duration(others);
  return words;
}

}  // namespace hv::runtime
