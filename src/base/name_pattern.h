// Patterns of variables' names: FOO is that name, FOO_* all that begin with FOO_.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace hv {

inline bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty() || pattern.back() != '*') return name == pattern;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

}  // namespace hv
