// When to speak of a stall, and how.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/stall_inspector.h"

#include <algorithm>

#include "runtime/engine/mismatch.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

std::string whole_seconds_text(Duration time) {
  return seconds_text(std::chrono::duration_cast<std::chrono::seconds>(time));
}

}  // namespace

std::vector<Waiting> StallInspector::inspect(const std::vector<Waiting>& waiting, TimePoint time) {
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
  next_look_ = time + limit_ / 4;
  return due;
}

std::optional<Duration> ParentWatch::inspect(TimePoint waits_since, TimePoint time) {
  const Duration first = limit_ + limit_ / 2;
  const Duration silent = time - std::max(waits_since, last_heard_);
  if (limit_ == Duration::zero() || silent < std::max(first, next_)) return std::nullopt;
  next_ = 2 * silent;
  return silent;
}

std::string stall_words(const Waiting& stall, int size, TimePoint time) {
  std::string words = "tensor '" + printable(stall.name) + "' has waited " +
                      whole_seconds_text(time - stall.since) + " for " + ranks_text(stall.missing);
  if (!stall.silent.empty()) {
    words += ", some of which may have it: nothing was heard of it from " +
             ranks_text(stall.silent) + ", which speaks for others of its host, too";
  }
  return words + "; it is ready on the other " +
         std::to_string(static_cast<std::size_t>(size) - stall.missing.size()) + " of " +
         std::to_string(size) +
         " ranks. Those that miss it may be slow, or take another path through the program";
}

std::string silence_words(const Silence& silence) {
  return "tensor '" + printable(silence.name) + "' has waited " +
         whole_seconds_text(silence.waited) + ": nothing was heard for " +
         whole_seconds_text(silence.silent) + " from rank " + std::to_string(silence.rank) +
         ", on whose word this rank waits. Its process may be stopped, its host overloaded or out "
         "of reach";
}

}  // namespace hv::runtime
