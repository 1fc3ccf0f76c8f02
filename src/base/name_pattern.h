// Patterns of variables' names: FOO is that name, FOO_* all that begin with FOO_.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

inline bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty() || pattern.back() != '*') return name == pattern;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

// Many patterns at once: a name is compared with two of them, however many there are.
class NamePatterns {
 public:
  explicit NamePatterns(const std::vector<std::string>& patterns);
  bool has_match(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> prefixes_;  // no one of them begins with another
};

}  // namespace hv
