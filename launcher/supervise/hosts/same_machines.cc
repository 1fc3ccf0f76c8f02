// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/same_machines.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "launcher/allocation/host_names.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// More machines are counted, and the names of more origins stand without them.
constexpr std::size_t kMostMachines = 8, kMostOrigins = 8;

std::string name_of(const HostOnMachine& host) {
  return (host.user.empty() ? "" : host.user + "@") + host.name;
}

// "n[1-3] (-H) and login (hosts:4)"
std::string names_text(const std::vector<HostOnMachine>& hosts) {
  std::vector<std::string> all;
  std::vector<std::pair<std::string, std::vector<std::string>>> by_origin;
  for (const HostOnMachine& host : hosts) {
    all.push_back(name_of(host));
    if (by_origin.empty() || by_origin.back().first != host.origin)
      by_origin.push_back({host.origin, {}});
    by_origin.back().second.push_back(all.back());
  }
  if (by_origin.size() > kMostOrigins) return hosts_text(all);
  std::vector<std::string> groups;
  for (const auto& [origin, names] : by_origin)
    groups.push_back(hosts_text(names) + (origin.empty() ? "" : " (" + origin + ")"));
  return join(groups, " and ");
}

// Agents of two users do not find each other: the address and the port decide.
void find_two_users(std::vector<HostOnMachine>* hosts) {
  std::map<std::pair<std::string, std::uint16_t>, std::uint32_t> first_at;
  for (std::uint32_t i = 0; i < hosts->size(); ++i) {
    HostOnMachine& host = (*hosts)[i];
    const std::string& address = host.address.empty() ? host.name : host.address;
    const auto [found, is_new] = first_at.emplace(std::pair(address, host.port), i);
    const HostOnMachine& first = (*hosts)[found->second];
    if (is_new || host.first_here || host.user == first.user) continue;
    host.first_here = first.first_here.value_or(found->second);
  }
}

}  // namespace

std::optional<Error> same_machines(std::vector<HostOnMachine> hosts) {
  find_two_users(&hosts);
  // Agents that start at the same time may see each other in any order, also in a circle.
  std::map<std::size_t, std::size_t> leaders;  // an index of a host to a lower one of its machine
  const auto leader_of = [&leaders](std::size_t host) {
    for (auto above = leaders.find(host); above != leaders.end() && above->second != host;
         above = leaders.find(host))
      host = above->second;
    return host;
  };
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i].first_here) continue;
    const std::size_t one = leader_of(i), other = leader_of(*hosts[i].first_here);
    leaders[std::max(one, other)] = std::min(one, other);
    leaders.emplace(std::min(one, other), std::min(one, other));
  }
  std::map<std::size_t, std::vector<HostOnMachine>> machines;  // by leader
  std::set<std::size_t> with_another;                          // which is none of these hosts
  for (const auto& [host, above] : leaders) {
    if (host < hosts.size())
      machines[leader_of(host)].push_back(hosts[host]);
    else
      with_another.insert(leader_of(host));
  }
  if (machines.empty()) return std::nullopt;
  std::vector<std::string> sentences;
  for (const auto& [leader, names] : machines) {
    if (sentences.size() == kMostMachines) {
      sentences.push_back(std::to_string(machines.size() - kMostMachines) +
                          " more machines have several names, too");
      break;
    }
    sentences.push_back((with_another.contains(leader) ? "another host and " : "") +
                        names_text(names) + " are one machine");
  }
  return Error(ErrorKind::kUsage, "place the ranks: " + join(sentences, "; "),
               "name each machine once, with all of its slots, or add --oversubscribe to run ranks "
               "there under each name");
}

}  // namespace hv::launcher
