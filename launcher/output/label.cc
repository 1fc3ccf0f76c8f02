// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/label.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace hv::launcher {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// Cyan, green, yellow, magenta, blue and red: readable on dark and light grounds; neighbours
// differ.
constexpr std::array kColours = {"\x1b[36m", "\x1b[32m", "\x1b[33m",
                                 "\x1b[35m", "\x1b[34m", "\x1b[31m"};
constexpr const char* kNoColour = "\x1b[0m";

// Before 1970 too: seconds round down, so that the fraction is never negative.
std::int64_t second_of(std::int64_t wall_clock_ns) {
  const std::int64_t second = wall_clock_ns / kNanosecondsPerSecond;
  return wall_clock_ns % kNanosecondsPerSecond < 0 ? second - 1 : second;
}

}  // namespace

std::string_view LabelMaker::label(std::uint32_t rank, std::int64_t wall_clock_ns) {
  const bool is_same = rank == rank_ && (wall_clock_ns == wall_clock_ns_ || !style_.timestamp);
  if (is_same && !text_.empty()) return text_;
  text_.clear();
  if (style_.label) write_rank(rank);
  if (style_.timestamp) write_time(wall_clock_ns);
  rank_ = rank;
  wall_clock_ns_ = wall_clock_ns;
  return text_;
}

void LabelMaker::write_rank(std::uint32_t rank) {
  if (style_.colour) text_ += kColours[rank % kColours.size()];
  text_ += '[';
  text_ += std::to_string(rank);
  if (style_.hosts && rank < style_.hosts->size()) (text_ += ' ') += (*style_.hosts)[rank];
  text_ += ']';
  if (style_.colour) text_ += kNoColour;
  text_ += ' ';
}

void LabelMaker::write_time(std::int64_t wall_clock_ns) {
  const std::int64_t second = second_of(wall_clock_ns);
  if (second != second_) {
    const auto seconds = static_cast<std::time_t>(second);
    std::tm parts{};
    std::array<char, 64> text{};
    localtime_r(&seconds, &parts);
    second_text_.assign(text.data(),
                        std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &parts));
    const long minutes = std::labs(parts.tm_gmtoff) / 60;
    std::snprintf(text.data(), text.size(), "%c%02ld:%02ld ", parts.tm_gmtoff < 0 ? '-' : '+',
                  minutes / 60, minutes % 60);
    offset_text_ = text.data();
    second_ = second;
  }
  std::array<char, 16> fraction{};
  const int length =
      std::snprintf(fraction.data(), fraction.size(), "%06d",
                    static_cast<int>((wall_clock_ns - second * kNanosecondsPerSecond) / 1000));
  text_ += second_text_;
  text_.append(fraction.data(), static_cast<std::size_t>(length));
  text_ += offset_text_;
}

}  // namespace hv::launcher
