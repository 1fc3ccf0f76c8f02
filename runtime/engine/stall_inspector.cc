// When to speak of a stall, and how.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/stall_inspector.h"

#include <algorithm>

#include "runtime/engine/mismatch.h"
#include "runtime/engine/tensor_description.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::runtime {

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
    const auto known = told_.find(tensor.name);
    Duration next = known == told_.end() ? limit_ : known->second;
    if (time - tensor.since >= next) {
      due.push_back(tensor);
      while (next <= time - tensor.since) next *= 2;
    }
    still[tensor.name] = next;
  }
  told_ = std::move(still);  // forgets what has completed
  return due;
}

std::optional<Duration> ParentWatch::inspect(TimePoint waits_since, TimePoint time) {
  const Duration first = limit_ + limit_ / 2;
  const Duration silent = time - std::max(waits_since, last_heard_);
  if (limit_ == Duration::zero() || silent < std::max(first, next_)) return std::nullopt;
  next_ = 2 * silent;
  return silent;
}

std::string stall_words(const Waiting& stall, const std::vector<int>& members, int ranks,
                        TimePoint time) {
  std::string words = tensor_words(stall.name) + " has waited " + waited_text(time - stall.since) +
                      " for " + ranks_text(stall.missing, members);
  if (!stall.silent.empty()) {
    words += ", some of which may have it: nothing was heard of it from " +
             ranks_text(stall.silent, members) + ", which speaks for others of its host, too";
  }
  words += "; it is ready on the other " +
           std::to_string(ranks - static_cast<int>(stall.missing.size())) + " of " +
           std::to_string(ranks) +
           " ranks. Those that miss it may be slow, or take another path through the program";
  for (const Standing& one : stall.standing) {
    words += (&one == stall.standing.data() ? ": rank " : "; rank ") +
             std::to_string(job_rank(members, static_cast<int>(one.rank))) + " " + one.words;
  }
  return words;
}

std::string stall_words(const PairStall& stall, TimePoint time) {
  const std::string rank = "rank " + std::to_string(stall.peer);
  return "tensor '" + printable(stall.name) + "' has waited " + waited_text(time - stall.since) +
         " for " + rank + " to " + (stall.sends ? "receive" : "send") + " it" +
         (stall.set == 0 ? "" : " in process set " + std::to_string(stall.set)) +
         "; that rank may be slow, or take another path through the program";
}

void tell_stalls(const std::vector<std::string>& words) {
  constexpr std::size_t kMostTold = 8;
  for (std::size_t i = 0; i < std::min(words.size(), kMostTold); ++i)
    HV_LOG(kWarn, "engine") << words[i];
  if (words.size() > kMostTold) {
    HV_LOG(kWarn, "engine") << words.size() - kMostTold
                            << " more tensors have waited as long or longer";
  }
}

std::string ending_words(const std::string& stall, Duration limit) {
  return stall.substr(0, kMostEndingBytes) +
         ". That ends the job: HVRUN_STALL_SHUTDOWN_SECONDS is " + seconds_text(limit);
}

std::string silence_words(const Silence& silence, const std::vector<int>& members) {
  return tensor_words(silence.name) + " has waited " + waited_text(silence.waited) +
         ": nothing was heard for " + waited_text(silence.silent) + " from rank " +
         std::to_string(job_rank(members, silence.rank)) +
         ", on whose word this rank waits. Its process may be stopped, its host overloaded or out "
         "of reach";
}

}  // namespace hv::runtime
