// When to speak of a stall, and how.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/stall_inspector.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/engine/negotiation/mismatch.h"
#include "runtime/engine/tensor_description.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

using Names = std::vector<std::string>;

// "tensor 'w' has waited 61 s", "tensor 'w' and 2 more ('v', 'u') have waited up to 61 s"
std::string who_has_waited(const Waiting& oldest, const Names& others, TimePoint time) {
  constexpr std::size_t kMostNamed = 3;
  const std::string waited = format_duration(time - oldest.since);
  if (others.empty()) return tensor_words(oldest.name) + " has waited " + waited;
  std::string names;
  for (std::size_t i = 0; i < std::min(others.size(), kMostNamed); ++i)
    names += (i == 0 ? "'" : ", '") + printable(others[i]) + "'";
  return tensor_words(oldest.name) + " and " + std::to_string(others.size()) + " more (" + names +
         (others.size() > kMostNamed ? ", ..." : "") + ") have waited up to " + waited;
}

std::string waiting_words(const Waiting& stall, const Names& others,
                          const std::vector<int>& members, int ranks, TimePoint time) {
  const bool is_one = others.empty();
  std::string words =
      who_has_waited(stall, others, time) + " for " + ranks_text(stall.missing, members);
  if (!stall.silent.empty()) {
    words += std::string(", some of which may have ") + (is_one ? "it" : "them") +
             ": nothing was heard of " + (is_one ? "it" : "them") + " from " +
             ranks_text(stall.silent, members) + ", which speaks for others of its host, too";
  }
  words += std::string("; ") + (is_one ? "it is" : "they are") + " ready on the other " +
           std::to_string(ranks - static_cast<int>(stall.missing.size())) + " of " +
           std::to_string(ranks) + " ranks. Those that miss " + (is_one ? "it" : "them") +
           " may be slow, or take another path through the program";
  for (const Standing& one : stall.standing) {
    words += (&one == stall.standing.data() ? ": rank " : "; rank ") +
             std::to_string(job_rank(members, static_cast<int>(one.rank))) + " " + one.words;
  }
  return words;
}

}  // namespace

std::string what_ends_it(Duration end) {
  return end == Duration::zero()
             ? ". Nothing ends this wait; HVRUN_STALL_SHUTDOWN_SECONDS=300 would"
             : ". HVRUN_STALL_SHUTDOWN_SECONDS ends the job at " + format_duration(end);
}

Duration shorter_limit(Duration one, Duration other) {
  if (one == Duration::zero() || other == Duration::zero()) return std::max(one, other);
  return std::min(one, other);
}

std::vector<Waiting> StallInspector::inspect(const std::vector<Waiting>& waiting, TimePoint time) {
  next_look_ = time + shortest_ / 4;
  if (limit_ == Duration::zero()) return {};
  std::vector<Waiting> due;
  std::unordered_map<std::string, Duration> still;
  for (const Waiting& tensor : waiting) {
    const auto known = next_due_.find(tensor.name);
    Duration next = known == next_due_.end() ? limit_ : known->second;
    if (time - tensor.since >= next) {
      due.push_back(tensor);
      while (next <= time - tensor.since) next *= 2;
    }
    still[tensor.name] = next;
  }
  next_due_ = std::move(still);  // forgets what has completed
  std::erase_if(told_, [this](const auto& one) { return !next_due_.contains(one.first); });
  return due;
}

std::size_t Waiting::answers() const {
  return static_cast<std::size_t>(
      std::count_if(standing.begin(), standing.end(),
                    [](const Standing& one) { return one.words != kNoAnswer; }));
}

std::vector<Waiting> StallInspector::news(std::vector<Waiting> due) {
  std::erase_if(due, [this](const Waiting& stall) {
    const auto known = told_.find(stall.name);
    if (known == told_.end()) return false;
    const Waiting& before = known->second;
    return before.since == stall.since && before.missing == stall.missing &&
           before.silent == stall.silent && stall.answers() <= before.answers();
  });
  for (const Waiting& stall : due) told_[stall.name] = stall;
  return due;
}

std::optional<Duration> ParentWatch::inspect(TimePoint waits_since, TimePoint time) {
  const Duration silent = time - std::max(waits_since, last_heard_);
  if (limit_ == Duration::zero() || is_told_ || silent < limit_ + limit_ / 2) return std::nullopt;
  is_told_ = true;
  return silent;
}

std::string stall_words(const Waiting& stall, const std::vector<int>& members, int ranks,
                        TimePoint time) {
  return waiting_words(stall, {}, members, ranks, time);
}

std::vector<std::string> stall_lines(std::vector<Waiting> stalls, const std::vector<int>& members,
                                     int ranks, Duration end, TimePoint time) {
  std::sort(stalls.begin(), stalls.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.since, a.name) < std::tie(b.since, b.name);
  });
  struct Line {
    const Waiting* oldest;
    Names others;
  };
  std::vector<Line> gathered;
  std::map<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>, std::size_t> places;
  for (const Waiting& stall : stalls) {
    // Who has joined waits for as long as others have data: that is no tensor, and nothing ends it.
    const bool is_join = stall.name == kJoinName;
    const auto [place, is_new] =
        is_join ? std::make_pair(places.end(), true)
                : places.try_emplace({stall.missing, stall.silent}, gathered.size());
    if (is_new) {
      gathered.push_back({&stall, {}});
    } else {
      gathered[place->second].others.push_back(stall.name);
    }
  }
  std::vector<std::string> lines;
  bool is_told = false;
  for (const Line& line : gathered) {
    lines.push_back(waiting_words(*line.oldest, line.others, members, ranks, time));
    if (line.oldest->name != kJoinName && !std::exchange(is_told, true))
      lines.back() += what_ends_it(end);
  }
  return lines;
}

std::string stall_words(const PairStall& stall, TimePoint time) {
  const std::string rank = "rank " + std::to_string(stall.peer);
  if (stall.is_on_gpu)
    return "tensor '" + printable(stall.name) + "' has waited " +
           format_duration(time - stall.since) + " for its own GPU stream, to be sent to " + rank +
           "; what that stream was given before may wait for another rank";
  return "tensor '" + printable(stall.name) + "' has waited " +
         format_duration(time - stall.since) + " for " + rank + " to " +
         (stall.sends ? "receive" : "send") + " it" +
         (stall.set == 0 ? "" : " in process set " + std::to_string(stall.set)) +
         "; that rank may be slow, or take another path through the program";
}

void tell_stalls(const std::vector<std::string>& words) {
  constexpr std::size_t kMostTold = 8;
  for (std::size_t i = 0; i < std::min(words.size(), kMostTold); ++i)
    HV_LOG(kWarn, "engine") << words[i];
  if (words.size() > kMostTold) {
    HV_LOG(kWarn, "engine") << words.size() - kMostTold << " waits more are as long or longer";
  }
}

wire::TensorStall told_stall(const std::string& name, Duration waited,
                             const std::vector<int>& missing) {
  wire::TensorStall told;
  told.waited_s = std::chrono::duration<double>(waited).count();
  told.name = printable(name, wire::kMaxStalledName / 2).substr(0, wire::kMaxStalledName);
  for (const int rank : missing) {
    if (told.missing.size() < wire::kMaxStalledRanks)
      told.missing.push_back(static_cast<std::uint32_t>(rank));
    else
      ++told.more_missing;
  }
  return told;
}

std::string ending_words(const std::string& stall, Duration limit) {
  return stall.substr(0, kMostEndingBytes) +
         ". That ends the job: HVRUN_STALL_SHUTDOWN_SECONDS is " + format_duration(limit);
}

std::string silence_words(const Silence& silence, const std::vector<int>& members) {
  return tensor_words(silence.name) + " has waited " + format_duration(silence.waited) +
         ": nothing was heard for " + format_duration(silence.silent) + " from rank " +
         std::to_string(job_rank(members, silence.rank)) +
         ", on whose word this rank waits. Its process may be stopped, its host overloaded or out "
         "of reach";
}

}  // namespace hv::runtime
