// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/last_enqueued.h"

#include "src/base/text.h"

namespace hv::runtime {

std::string LastEnqueued::words(TimePoint time) const {
  if (name_.empty()) return "has enqueued nothing yet";
  constexpr std::size_t kMostNameBytes = 128;
  const std::string what =
      name_.starts_with(kOwnPrefix)
          ? tensor_words(name_.substr(0, kMostNameBytes))
          : std::string(collective_name(kind_)) + " '" + printable(name_, kMostNameBytes) + "'";
  std::string words = "last enqueued " + what + " " + waited_text(time - time_) + " ago";
  if (set_ != 0) words += " in process set " + std::to_string(set_);
  const auto operation = operation_.lock();
  const bool is_open = operation && !operation->is_done.load(std::memory_order_acquire);
  return words + (is_open ? ", which is not complete" : ", which is complete");
}

}  // namespace hv::runtime
