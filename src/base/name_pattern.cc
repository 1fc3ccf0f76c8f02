// SPDX-License-Identifier: Apache-2.0
#include "src/base/name_pattern.h"

#include <iterator>

namespace hv {

NamePatterns::NamePatterns(const std::vector<std::string>& patterns) {
  std::set<std::string> prefixes;
  for (const std::string& pattern : patterns) {
    if (pattern.empty() || pattern.back() != '*')
      names_.insert(pattern);
    else
      prefixes.insert(pattern.substr(0, pattern.size() - 1));
  }
  // A prefix sorts before the longer ones that begin with it, which add nothing.
  for (const std::string& prefix : prefixes)
    if (prefixes_.empty() || !prefix.starts_with(*prefixes_.rbegin()))
      prefixes_.insert(prefixes_.end(), prefix);
}

// Only the last prefix that sorts up to the name can match it: a text between a matching prefix and
// the name would begin with that prefix, and prefixes_ has no such text.
bool NamePatterns::has_match(std::string_view name) const {
  if (names_.find(name) != names_.end()) return true;
  const auto after = prefixes_.upper_bound(name);
  return after != prefixes_.begin() && name.starts_with(*std::prev(after));
}

}  // namespace hv
