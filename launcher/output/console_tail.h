// ConsoleTail: the last text that one console got, so that a report does not repeat what stands
// right above it. Bounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/label.h"

namespace hv::launcher {

// As much as a rank's last lines can be, with their labels (RecentLines).
constexpr std::size_t kTailBytes = 48 << 10;

// From any thread.
class ConsoleTail {
 public:
  explicit ConsoleTail(LabelStyle style) : style_(style) {}

  // text: has been written.
  void add(std::string_view text);
  // The last that was written is these lines of that rank, each whole and with its label.
  bool ends_with(const std::vector<std::string>& lines, std::uint32_t rank) const;

 private:
  const LabelStyle style_;
  mutable std::mutex mutex_;  // guards text_
  std::string text_;          // at most twice kTailBytes, so that not every write moves it
};

}  // namespace hv::launcher
