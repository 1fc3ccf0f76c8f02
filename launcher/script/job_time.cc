// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::int64_t kMost = kLongestJobTime.count();

// Only digits, so that "-5" and "+5" are no numbers, within a bound that no sum can overflow.
std::optional<std::int64_t> parse_count(std::string_view text) {
  const bool is_digits =
      !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  const auto number = is_digits ? parse_integer(text) : std::nullopt;
  return number && *number <= kMost ? number : std::nullopt;
}

std::optional<std::int64_t> parse_clock(std::string_view text, std::int64_t most_hours) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) return std::nullopt;
  const auto hours = parse_count(parts[0]), minutes = parse_count(parts[1]),
             seconds = parse_count(parts[2]);
  if (!hours || !minutes || !seconds || *hours > most_hours || *minutes > 59 || *seconds > 59)
    return std::nullopt;
  return *hours * kHour + *minutes * kMinute + *seconds;
}

// 1d12h: each unit once at most, the larger first.
std::optional<std::int64_t> parse_units(std::string_view text) {
  constexpr std::string_view kUnits = "dhms";
  constexpr std::int64_t kSeconds[] = {kDay, kHour, kMinute, 1};
  std::int64_t sum = 0;
  std::size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto count = parse_count(text.substr(0, digits));
    const std::size_t unit =
        digits < text.size() ? kUnits.find(text[digits]) : std::string_view::npos;
    if (!count || unit == std::string_view::npos || unit < next_unit) return std::nullopt;
    if (*count > kMost / kSeconds[unit]) return std::nullopt;
    sum += *count * kSeconds[unit];
    next_unit = unit + 1;
    text.remove_prefix(digits + 1);
  }
  return sum;
}

std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::optional<std::chrono::seconds> parse_job_time(std::string_view text) {
  std::optional<std::int64_t> time;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto days = parse_count(text.substr(0, dash));
    const auto rest = parse_clock(text.substr(dash + 1), 23);
    if (days && rest && *days <= kMost / kDay) time = *days * kDay + *rest;
  } else if (text.find(':') != std::string_view::npos) {
    time = parse_clock(text, kMost / kHour);
  } else {
    time = parse_units(text);
  }
  if (!time || *time < 1 || *time > kMost) return std::nullopt;
  return std::chrono::seconds(*time);
}

std::string format_job_time(std::chrono::seconds time) {
  const std::int64_t all = time.count();
  return two_digits(all / kHour) + ":" + two_digits(all % kHour / kMinute) + ":" +
         two_digits(all % kMinute);
}

std::string format_hours_and_minutes(std::chrono::seconds time) {
  const std::int64_t minutes = (time.count() + kMinute - 1) / kMinute;
  return two_digits(minutes / 60) + ":" + two_digits(minutes % 60);
}

}  // namespace hv::launcher
