// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/address_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/allocation/host_names.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

constexpr int kAllPairsUpTo = 32;
constexpr int kNeighbours = 8;

std::string cannot_reach(const std::vector<std::string>& from, const std::vector<std::string>& to,
                         const std::string& reason) {
  return named_hosts_text(from) + word_for(from.size(), " reaches", " reach") + " no address of " +
         named_hosts_text(to) + (reason.empty() ? "" : " (" + reason + ")") +
         ": ranks there cannot talk to each other; check that the network between them lets TCP "
         "through";
}

// One host that many others do not reach, and one that does not reach many, is one warning.
std::vector<std::string> warnings_of(const std::vector<std::string>& names,
                                     const std::vector<ProbeOutcome>& failed) {
  std::map<std::pair<int, std::string>, std::vector<std::string>> by_target, by_source;
  for (const ProbeOutcome& outcome : failed)
    by_target[{outcome.to, outcome.reason}].push_back(
        names[static_cast<std::size_t>(outcome.from)]);
  for (const ProbeOutcome& outcome : failed)
    if (by_target[{outcome.to, outcome.reason}].size() == 1)
      by_source[{outcome.from, outcome.reason}].push_back(
          names[static_cast<std::size_t>(outcome.to)]);
  std::vector<std::string> warnings;
  for (const auto& [to, from] : by_target)
    if (from.size() > 1)
      warnings.push_back(
          cannot_reach(from, {names[static_cast<std::size_t>(to.first)]}, to.second));
  for (const auto& [from, to] : by_source)
    warnings.push_back(
        cannot_reach({names[static_cast<std::size_t>(from.first)]}, to, from.second));
  return warnings;
}

std::vector<std::string> matching_addresses(const wire::Facts& facts,
                                            const std::string& interfaces) {
  const auto filter = InterfaceFilter::parse(interfaces);
  if (!filter || filter->is_empty()) return facts.addresses;
  std::vector<InterfaceAddress> all;
  for (std::size_t i = 0; i < std::min(facts.addresses.size(), facts.interfaces.size()); ++i) {
    const std::string &interface = facts.interfaces[i], &ip = facts.addresses[i];
    all.push_back({interface, ip, kind_of_address(interface, ip)});
  }
  std::vector<std::string> allowed;
  for (const InterfaceAddress& address : hv::choose_addresses(all, *filter))
    allowed.push_back(address.ip);
  return allowed;
}

}  // namespace

std::vector<std::string> allowed_addresses(const wire::Facts& facts,
                                           const std::string& interfaces) {
  const std::vector<std::string> allowed = matching_addresses(facts, interfaces);
  return allowed.empty() ? facts.addresses : allowed;
}

bool allows_no_address(const wire::Facts& facts, const std::string& interfaces) {
  // Without the names of interfaces nothing can be concluded.
  return !facts.addresses.empty() && !facts.interfaces.empty() &&
         matching_addresses(facts, interfaces).empty();
}

std::vector<int> probe_partners(int host, int hosts) {
  std::vector<int> partners;
  if (hosts <= kAllPairsUpTo) {
    for (int other = 0; other < hosts; ++other) {
      if (other != host) partners.push_back(other);
    }
    return partners;
  }
  if (host != 0) partners.push_back(0);
  for (int step = 1; step <= kNeighbours; ++step) {
    const int other = (host + step) % hosts;
    if (other != 0) partners.push_back(other);
  }
  return partners;
}

namespace {

// For a host that no other host reached. An address that several hosts have (docker0) is reachable
// only from its own host.
std::string unproven_address(std::size_t host, const std::string& name,
                             const std::vector<std::vector<std::string>>& candidates) {
  const auto is_shared = [&](const std::string& address) {
    for (std::size_t other = 0; other < candidates.size(); ++other) {
      const auto& theirs = candidates[other];
      if (other != host && std::find(theirs.begin(), theirs.end(), address) != theirs.end())
        return true;
    }
    return false;
  };
  const auto own = std::find_if_not(candidates[host].begin(), candidates[host].end(), is_shared);
  return own == candidates[host].end() ? name : *own;
}

}  // namespace

AddressChoice choose_addresses(const std::vector<std::string>& names,
                               const std::vector<std::vector<std::string>>& candidates,
                               const std::vector<ProbeOutcome>& outcomes) {
  AddressChoice choice;
  std::vector<ProbeOutcome> failed;
  std::vector<std::map<std::string, int>> reached(names.size());
  std::vector<int> tested(names.size());  // by how many hosts
  for (const ProbeOutcome& outcome : outcomes) {
    const auto to = static_cast<std::size_t>(outcome.to);
    const auto from = static_cast<std::size_t>(outcome.from);
    if (to >= names.size() || from >= names.size()) continue;
    ++tested[to];
    if (outcome.reached.empty()) failed.push_back(outcome);
    for (const std::string& address : outcome.reached) ++reached[to][address];
  }
  choice.warnings = warnings_of(names, failed);
  for (std::size_t host = 0; host < names.size(); ++host) {
    std::string best;
    int most = 0;
    for (const std::string& address : candidates[host]) {
      const auto found = reached[host].find(address);
      if (found != reached[host].end() && found->second > most) {
        best = address;
        most = found->second;
      }
    }
    choice.addresses.push_back(most > 0 ? best : unproven_address(host, names[host], candidates));
    choice.common.emplace_back();
    for (const std::string& address : candidates[host])
      if (most > 0 && reached[host][address] == tested[host])
        choice.common.back().push_back(address);
  }
  return choice;
}

namespace {

// The interfaces that NCCL takes by itself: those named ib*, else all but docker* and the loopback.
std::vector<std::string> interfaces_of_nccl(const std::vector<std::string>& interfaces) {
  std::vector<std::string> infiniband, others;
  for (const std::string& name : interfaces) {
    std::vector<std::string>& chosen = name.starts_with("ib") ? infiniband : others;
    if (!name.starts_with("docker") &&
        std::find(chosen.begin(), chosen.end(), name) == chosen.end())
      chosen.push_back(name);
  }
  return infiniband.empty() ? others : infiniband;
}

}  // namespace

wire::Pairs interface_variables(const wire::Facts& facts, const std::string& address,
                                const std::vector<std::string>& common) {
  std::map<std::string, std::string> interface_of;  // by address
  for (std::size_t i = 0; i < std::min(facts.addresses.size(), facts.interfaces.size()); ++i)
    interface_of.emplace(facts.addresses[i], facts.interfaces[i]);
  const auto chosen = interface_of.find(address);
  if (chosen == interface_of.end() || common.empty()) return {};
  wire::Pairs variables{{"GLOO_SOCKET_IFNAME", chosen->second},
                        {"TP_SOCKET_IFNAME", chosen->second}};
  const std::vector<std::string> by_nccl = interfaces_of_nccl(facts.interfaces);
  std::vector<std::string> reached;
  for (const std::string& name : by_nccl)
    if (std::any_of(common.begin(), common.end(),
                    [&](const std::string& each) { return interface_of[each] == name; }))
      reached.push_back(name);
  if (reached.size() < by_nccl.size())
    variables.emplace_back("NCCL_SOCKET_IFNAME",
                           "=" + (reached.empty() ? chosen->second : join(reached, ",")));
  return variables;
}

namespace {

// The names in GLOO_SOCKET_IFNAME, which takes several, or TP_SOCKET_IFNAME, which takes one.
std::vector<std::string> requested_interfaces(const std::string& variable,
                                              const std::string& value) {
  std::vector<std::string> names =
      variable == "GLOO_SOCKET_IFNAME" ? split(value, ',') : std::vector<std::string>{value};
  std::erase(names, "");
  return names;
}

}  // namespace

std::vector<std::string> warnings_on_interfaces(
    const RankEnvironment& ranks,
    const std::vector<std::pair<std::string, const wire::Facts*>>& hosts) {
  std::vector<std::string> warnings;
  for (const char* variable : {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}) {
    const std::string value = ranks.as_environment().get_or(variable, "");
    for (const std::string& interface : requested_interfaces(variable, value)) {
      if (interface == "lo" && hosts.size() == 1) continue;
      std::vector<std::string> lacking;
      for (const auto& [name, facts] : hosts)
        if (!facts->interfaces.empty() &&
            std::find(facts->interfaces.begin(), facts->interfaces.end(), interface) ==
                facts->interfaces.end())
          lacking.push_back(name);
      if (!lacking.empty())
        warnings.push_back(named_hosts_text(lacking) + word_for(lacking.size(), " has", " have") +
                           " no interface '" + printable(interface) + "' with an address" +
                           (hosts.size() > 1 ? " for other hosts" : "") + ", but " + variable +
                           " names it; unset the variable, so that hvrun chooses the interface");
    }
  }
  return warnings;
}

}  // namespace hv::launcher
