// When to speak of a stall, and how.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/stall_inspector.h"

#include "runtime/engine/mismatch.h"
#include "src/base/text.h"

namespace hv::runtime {

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

std::string stall_words(const Waiting& stall, int size, TimePoint time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time - stall.since).count();
  return "tensor '" + printable(stall.name) + "' has waited " + std::to_string(seconds) +
         " s for " + ranks_text(stall.missing) + "; it is ready on the other " +
         std::to_string(static_cast<std::size_t>(size) - stall.missing.size()) + " of " +
         std::to_string(size) +
         " ranks. Those that miss it may be slow, or take another path through the program";
}

}  // namespace hv::runtime
