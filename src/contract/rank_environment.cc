// SPDX-License-Identifier: Apache-2.0
#include "src/contract/rank_environment.h"

namespace hv {

void RankEnvironment::set_default(std::string name, std::string value) {
  if (!has(name)) set(std::move(name), std::move(value));
}

void RankEnvironment::set_all(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries)
    if (const auto variable = split_variable(entry))
      set(std::string(variable->first), std::string(variable->second));
}

void RankEnvironment::set_all(const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [name, value] : pairs) set(name, value);
}

void RankEnvironment::set_all(const RankEnvironment& later) {
  for (const auto& [name, value] : later.as_environment().all()) set(name, value);
}

}  // namespace hv
