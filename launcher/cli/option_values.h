// Values of options as typed, checked: numbers, times, paths.
// SPDX-License-Identifier: Apache-2.0
//
// Each throws Error(kUsage) that names the option, the value and what was expected.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

// Returns the parsed value; throws where there is none.
template <class T>
T need(const std::optional<T>& value, const std::string& option, const std::string& text,
       const std::string& expected) {
  if (value) return *value;
  throw Error(ErrorKind::kUsage, option + " '" + printable(text) + "' is not understood",
              "expected " + expected);
}

[[noreturn]] void refuse_empty_value(const std::string& option);

Duration parse_duration(const std::string& option, const std::string& text);
int parse_number_in(const std::string& option, const std::string& text, int lowest, int highest);
// "0,8-15", in any order: ascending, each once, from 0 to highest.
std::vector<int> parse_ranges(const std::string& option, const std::string& text, int highest);

// The current directory for an empty path, and in front of a relative one; not asked for otherwise.
std::string absolute(const std::string& path,
                     const std::function<std::string()>& current_directory);

}  // namespace hv::launcher
