// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/option_values.h"

#include <algorithm>
#include <utility>

namespace hv::launcher {

void refuse_empty_value(const std::string& option) {
  throw Error(ErrorKind::kUsage, option + " has an empty value",
              "give it one, or leave the option out; is a shell variable unset?");
}

Duration parse_duration(const std::string& option, const std::string& text) {
  const double seconds =
      need(parse_seconds(text), option, text,
           "a time in seconds, or with its unit, such as 30, 0.5, 500ms, 10m or 2h");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

int parse_number_in(const std::string& option, const std::string& text, int lowest, int highest) {
  const std::string expected =
      "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
  const std::int64_t number = need(parse_integer(text), option, text, expected);
  if (number >= lowest && number <= highest) return static_cast<int>(number);
  throw Error(ErrorKind::kUsage,
              option + " '" + printable(text) + "' is " +
                  (number < lowest ? "too small: at least " + std::to_string(lowest)
                                   : "too large: at most " + std::to_string(highest)) +
                  " is wanted",
              "expected " + expected);
}

std::vector<int> parse_ranges(const std::string& option, const std::string& text, int highest) {
  // Sorted pairs, so that overlapping ranges are not expanded again and again.
  std::vector<std::pair<int, int>> ranges;
  for (const std::string& part : split(text, ',')) {
    if (part.empty() || part.back() == '-')
      throw Error(ErrorKind::kUsage,
                  option + " '" + printable(text) + "' lacks a number beside a comma or hyphen",
                  "expected numbers and ranges, such as 0,8-15");
    const std::size_t dash = part.find('-', 1);
    const int first = parse_number_in(option, part.substr(0, dash), 0, highest);
    const int last = dash == std::string::npos
                         ? first
                         : parse_number_in(option, part.substr(dash + 1), 0, highest);
    if (last < first)
      throw Error(ErrorKind::kUsage,
                  option + ": the range " + printable(part) + " ends before it begins",
                  "expected numbers and ranges, such as 0,8-15");
    ranges.emplace_back(first, last);
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<int> numbers;
  for (const auto& [first, last] : ranges)
    for (int number = numbers.empty() ? first : std::max(first, numbers.back() + 1); number <= last;
         ++number)
      numbers.push_back(number);
  return numbers;
}

std::string absolute(const std::string& path,
                     const std::function<std::string()>& current_directory) {
  if (path.empty()) return current_directory();
  return path[0] == '/' ? path : current_directory() + "/" + path;
}

}  // namespace hv::launcher
