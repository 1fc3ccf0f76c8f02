// NamePatterns: patterns of variables' names. FOO is that name, FOO_* all that begin with FOO_.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

// A match costs two look-ups, however many patterns there are.
class NamePatterns {
 public:
  explicit NamePatterns(const std::vector<std::string>& patterns);
  bool has_match(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> prefixes_;  // none begins with another
};

}  // namespace hv
