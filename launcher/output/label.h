// What stands before a line: the rank and, on request, the time at the source. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hv::launcher {

struct LabelStyle {
  bool label = true;
  bool timestamp = false;
  bool colour = false;  // escape sequences around "[rank]"
};

// "[3] ", "2026-11-21T04:40:48.123456Z " or both in this order. One for each console: it remembers
// texts.
class LabelMaker {
 public:
  explicit LabelMaker(LabelStyle style) : style_(style) {}
  // Valid until the next call.
  std::string_view label(std::uint32_t rank, std::int64_t wall_clock_ns);
  bool is_empty() const { return !style_.label && !style_.timestamp; }

 private:
  void write_rank(std::uint32_t rank);
  void write_time(std::int64_t wall_clock_ns);

  LabelStyle style_;
  std::string text_;
  // Of the last call: chunks of one rank and moment often come in a row.
  std::uint32_t rank_ = 0;
  std::int64_t wall_clock_ns_ = 0;
  std::int64_t second_ = INT64_MIN;
  std::string second_text_;  // up to the seconds
};

}  // namespace hv::launcher
