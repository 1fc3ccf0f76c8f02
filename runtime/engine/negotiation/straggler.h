// Stragglers: for whom the others wait, and for how long.
// SPDX-License-Identifier: Apache-2.0
//
// A node of the control tree sees which of its sources (itself, its children) has a tensor last,
// and how long ago the first had it. One pair goes up with each report, the longest wait and the
// rank that ended it: messages do not grow with the ranks. The root charges each wait to that rank,
// and to the only rank that is missing, if it knows it, what of a wait has passed when it reports.
// Durations only, so hosts' clocks need not agree. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "src/base/clock.h"

namespace hv::runtime {

// The root's: who ended how much waiting. Waits that overlap count once, so the sum over all ranks
// is never more than the time that has passed.
class WaitLedger {
 public:
  struct Entry {
    Duration waited{};
    std::uint64_t times = 0;
  };

  void charge(std::uint32_t rank, TimePoint since, TimePoint until);
  // Of a wait that goes on: what of it has not been charged. What ends it charges the rest.
  void charge_open(std::uint32_t rank, TimePoint since, TimePoint until);
  Duration total() const { return total_; }
  TimePoint charged_until() const { return charged_until_; }
  const std::map<std::uint32_t, Entry>& by_rank() const { return by_rank_; }
  // The rank most waited for; one of by_rank() unless nobody was.
  std::uint32_t worst_rank() const { return worst_rank_; }
  // What was charged after `earlier`, a copy of this one.
  WaitLedger since(const WaitLedger& earlier) const;
  // (rank, entry), the longest wait first.
  std::vector<std::pair<std::uint32_t, Entry>> sorted() const;

 private:
  Duration total_{};
  TimePoint charged_until_{};
  std::uint32_t worst_rank_ = 0;
  Duration worst_{};  // its wait
  std::map<std::uint32_t, Entry> by_rank_;
};

// A node's: what it sees of its own sources.
class Arrivals {
 public:
  explicit Arrivals(int self) : self_(self) { latest_.rank = static_cast<std::uint32_t>(self); }

  // A child's report carries this; it holds for whatever the report completes.
  void child_says(int child, const LatestArrival& latest);
  // The last source has a tensor that was first heard of at `since`.
  void completed(int source, TimePoint since, TimePoint time);
  // Root: everybody but this rank has one since then.
  void still_waits(std::uint32_t rank, TimePoint since, TimePoint time) {
    ledger_.charge_open(rank, since, time);
  }
  // For the next report.
  LatestArrival take_latest();
  const WaitLedger& ledger() const { return ledger_; }

 private:
  const int self_;
  std::unordered_map<int, LatestArrival> told_;  // by child
  LatestArrival latest_;
  WaitLedger ledger_;
};

// When the root says what.
class StragglerReport {
 public:
  // period: what has come together is told so often; zero: only at the end.
  explicit StragglerReport(Duration period) : period_(period) {}

  // periodic() will tell what there is; what is waited for now should be charged first.
  bool is_due(TimePoint time) const {
    return period_ > Duration::zero() && begun_ != TimePoint{} && time - told_ >= period_;
  }
  // When it is due; for ever if never.
  TimePoint next_look() const {
    const bool is_told = period_ > Duration::zero() && begun_ != TimePoint{};
    return is_told ? told_ + period_ : TimePoint::max();
  }
  // "" : nothing to tell now. members: the job's rank of each member of the set.
  std::string periodic(const WaitLedger& ledger, const std::vector<int>& members, TimePoint time);
  // Of the time from the first call of periodic() to the last; "": not worth a word.
  std::string final(const WaitLedger& ledger, const std::vector<int>& members) const;
  TimePoint last_seen() const { return seen_; }

 private:
  const Duration period_;
  TimePoint begun_{};
  TimePoint told_{};
  TimePoint seen_{};
  WaitLedger at_told_;
};

// "tensors waited 12 s of 150 s for the last rank to have them: rank 3 9 s (1200 times), ..."
std::string straggler_words(const WaitLedger& ledger, const std::vector<int>& members,
                            Duration elapsed);

}  // namespace hv::runtime
