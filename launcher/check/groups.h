// Many hosts in few words. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hv::launcher {

// Behind what fixes the first of them: "; likewise for n[2-7]". "" where there is no other.
std::string likewise(const std::vector<std::string>& hosts);

struct FactGroup {
  std::string fact;
  std::vector<std::string> hosts;
};
// Of (host, fact): hosts with the same fact together, the largest group first; of equals in the
// order of their first host.
std::vector<FactGroup> group_facts(const std::vector<std::pair<std::string, std::string>>& facts);
// "n[1-7]: 580.82, n8: 535.104"
std::string groups_as_text(const std::vector<FactGroup>& groups);
// All hosts but those of the first group.
std::vector<std::string> odd_hosts(const std::vector<FactGroup>& groups);

}  // namespace hv::launcher
