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
  // In their order a shorter prefix stands before the longer ones that begin with it.
  for (const std::string& prefix : prefixes)
    if (prefixes_.empty() || !prefix.starts_with(*prefixes_.rbegin()))
      prefixes_.insert(prefixes_.end(), prefix);
}

// Every text between a prefix of the name and the name begins with that prefix, and prefixes_ has
// no such text: so only the last prefix up to the name can match it.
bool NamePatterns::has_match(std::string_view name) const {
  if (names_.find(name) != names_.end()) return true;
  const auto after = prefixes_.upper_bound(name);
  return after != prefixes_.begin() && name.starts_with(*std::prev(after));
}

}  // namespace hv
