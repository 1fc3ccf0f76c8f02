// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/option_values.h"

namespace hv::launcher {

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

std::string absolute(const std::string& path,
                     const std::function<std::string()>& current_directory) {
  if (path.empty()) return current_directory();
  return path[0] == '/' ? path : current_directory() + "/" + path;
}

}  // namespace hv::launcher
