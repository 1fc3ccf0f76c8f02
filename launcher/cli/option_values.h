// Values of options as typed, checked: numbers, times, paths.
// SPDX-License-Identifier: Apache-2.0
//
// Each throws Error(kUsage) that names the option, the value and what was expected.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

// What was parsed; nothing: an error.
template <class T>
T need(const std::optional<T>& value, const std::string& option, const std::string& text,
       const std::string& expected) {
  if (value) return *value;
  throw Error(ErrorKind::kUsage, option + " '" + printable(text) + "' is not understood",
              "expected " + expected);
}

Duration parse_duration(const std::string& option, const std::string& text);
int parse_number_in(const std::string& option, const std::string& text, int lowest, int highest);

// The current directory for an empty path, and before a relative one; asked only then.
std::string absolute(const std::string& path,
                     const std::function<std::string()>& current_directory);

}  // namespace hv::launcher
