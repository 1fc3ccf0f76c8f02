// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/groups.h"

#include <algorithm>
#include <map>

#include "launcher/allocation/host_names.h"
#include "src/base/text.h"

namespace hv::launcher {

std::string likewise(const std::vector<std::string>& hosts) {
  if (hosts.size() < 2) return "";
  return "; likewise for " + hosts_text({hosts.begin() + 1, hosts.end()});
}

std::vector<FactGroup> group_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::vector<FactGroup> groups;
  std::map<std::string, std::size_t> places;
  for (const auto& [host, fact] : facts) {
    const auto [place, is_new] = places.try_emplace(fact, groups.size());
    if (is_new) groups.push_back({fact, {}});
    groups[place->second].hosts.push_back(host);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FactGroup& a, const FactGroup& b) {
    return a.hosts.size() > b.hosts.size();
  });
  return groups;
}

std::string groups_as_text(const std::vector<FactGroup>& groups) {
  std::vector<std::string> parts;
  for (const FactGroup& group : groups)
    parts.push_back(hosts_text(group.hosts) + ": " + group.fact);
  return join(parts, ", ");
}

std::vector<std::string> odd_hosts(const std::vector<FactGroup>& groups) {
  std::vector<std::string> hosts;
  for (std::size_t i = 1; i < groups.size(); ++i)
    hosts.insert(hosts.end(), groups[i].hosts.begin(), groups[i].hosts.end());
  return hosts;
}

}  // namespace hv::launcher
