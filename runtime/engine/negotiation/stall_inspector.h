// Stalls: which tensors have waited for some ranks for too long, reported once for each cause; and
// who that others depend on has fallen silent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/clock.h"
#include "src/wire/stacks.h"

namespace hv::runtime {

// Where a rank stands, as it says itself: behind "rank 3 ".
struct Standing {
  std::uint32_t rank = 0;
  std::string words;
};

// A tensor that some ranks have ready and others not.
struct Waiting {
  std::string name;
  TimePoint since;
  std::vector<std::uint32_t> missing;
  // Ranks that speak for others, too, and have said nothing of this tensor: it may be ready on some
  // of those.
  std::vector<std::uint32_t> silent;
  std::vector<Standing> standing{};  // of some that miss it

  std::size_t answers() const;  // of those
};

inline constexpr char kNoAnswer[] = "has not answered";  // in Standing::words

// A send or receive whose other rank has not asked for its part, or a send that cannot begin.
struct PairStall {
  std::string name;  // as both ranks give it
  std::uint32_t set = 0;
  int peer = 0;  // the other rank, of the job
  bool sends = false;
  bool is_on_gpu = false;  // its own stream has not come to it
  TimePoint since;
};
struct PairWarning {
  PairStall stall;
  std::string words;
};

// Nothing was heard from the rank on whose word this one waits.
struct Silence {
  int rank = 0;
  std::string name;  // of the oldest tensor that waits
  Duration waited{};
  Duration silent{};
};

// Of two limits of which zero means never.
Duration shorter_limit(Duration one, Duration other);

// Pure but for its memory. Due at limit, 2 x limit, 4 x limit, ..., when ranks that miss a tensor
// are asked again; reported only if that brings something new.
class StallInspector {
 public:
  // limit zero: never tells. other: somebody else looks at the same time, with that limit; zero:
  // nobody.
  explicit StallInspector(Duration limit, Duration other = Duration::zero())
      : limit_(limit), shortest_(shorter_limit(limit, other)) {}

  // When inspect() should be called next, at the earliest; also once nothing is due.
  bool is_due(TimePoint time) const { return shortest_ > Duration::zero() && time >= next_look_; }
  TimePoint next_look() const {
    return shortest_ > Duration::zero() ? next_look_ : TimePoint::max();
  }
  // All that waits now; returns what is due.
  std::vector<Waiting> inspect(const std::vector<Waiting>& waiting, TimePoint time);
  // Returns the due stalls that are not reported yet, and those that have changed since their
  // report: other ranks are missing, or more ranks have answered.
  std::vector<Waiting> news(std::vector<Waiting> due);

 private:
  const Duration limit_;
  const Duration shortest_;  // of the limits
  TimePoint next_look_{};
  std::unordered_map<std::string, Duration> next_due_;  // the age at which it is due next
  std::unordered_map<std::string, Waiting> told_;
};

// When a rank that waits must say that its parent in the control tree is silent. A parent that runs
// gives signs of life four times within the limit, from when it knows that somebody waits, which is
// half the limit after that began. Told at 1.5 x limit, once until it is heard of again.
class ParentWatch {
 public:
  explicit ParentWatch(Duration limit) : limit_(limit) {}

  void heard(TimePoint time) {
    last_heard_ = time;
    is_told_ = false;
  }
  // waits_since: of the oldest tensor. How long the parent has been silent, when that must be told.
  std::optional<Duration> inspect(TimePoint waits_since, TimePoint time);

 private:
  const Duration limit_;
  TimePoint last_heard_{};
  bool is_told_ = false;
};

// members: the job's rank of each member of the set that waits, none: the same; ranks: how many it
// has. "tensor 'w' has waited 61 s for ranks 3,5-7 ..."
std::string stall_words(const Waiting& stall, const std::vector<int>& members, int ranks,
                        TimePoint time);
// "tensor 'w' has waited 61 s for rank 3 to receive it ..."
std::string stall_words(const PairStall& stall, TimePoint time);
// Warnings: tensors that wait for the same ranks are one, the oldest of them in full: "tensor 'w'
// and 5 more ('v', ...) have waited up to 61 s for rank 3 ...". The first says what ends the wait.
// end: HVRUN_STALL_SHUTDOWN_SECONDS; zero: never.
std::vector<std::string> stall_lines(std::vector<Waiting> stalls, const std::vector<int>& members,
                                     int ranks, Duration end, TimePoint time);
// Behind the first of several warnings.
std::string what_ends_it(Duration end);
// Warns of the first eight in a line each, of the rest in one.
void tell_stalls(const std::vector<std::string>& words);
// For the launcher. missing: ranks of the job.
wire::TensorStall told_stall(const std::string& name, Duration waited,
                             const std::vector<int>& missing);
// Why a stall of these words ends the job.
constexpr std::size_t kMostEndingBytes = 1500;
std::string ending_words(const std::string& stall, Duration limit);
// "tensor 'w' has waited 90 s: nothing was heard for 90 s from rank 0 ..."
std::string silence_words(const Silence& silence, const std::vector<int>& members);

}  // namespace hv::runtime
