// What stands before a line: the rank and, on request, its host and the time at the source. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hv::launcher {

// Names by rank, for labels that have the host, too.
using HostsOfRanks = std::shared_ptr<const std::vector<std::string>>;

struct LabelStyle {
  bool label = true;
  bool timestamp = false;
  bool colour = false;      // escape sequences around "[rank]"
  HostsOfRanks hosts = {};  // nullptr: labels have none

  bool is_empty() const { return !label && !timestamp; }
};

// "[3] ", with hosts "[3 node1] ", "2026-11-21T05:40:48.123456+01:00 " (in this host's time zone),
// or rank and time in this order. One for each console: it remembers texts.
class LabelMaker {
 public:
  explicit LabelMaker(LabelStyle style) : style_(std::move(style)) {}
  // Valid until the next call.
  std::string_view label(std::uint32_t rank, std::int64_t wall_clock_ns);
  bool is_empty() const { return style_.is_empty(); }

 private:
  void write_rank(std::uint32_t rank);
  void write_time(std::int64_t wall_clock_ns);

  const LabelStyle style_;
  std::string text_;
  // Of the last call: chunks of one rank and moment often come in a row.
  std::uint32_t rank_ = 0;
  std::int64_t wall_clock_ns_ = 0;
  std::int64_t second_ = INT64_MIN;
  std::string second_text_;  // up to the seconds
  std::string offset_text_;  // of the time zone, then
};

}  // namespace hv::launcher
