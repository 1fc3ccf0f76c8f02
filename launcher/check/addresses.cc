// Can every host that will talk to another reach it, by an address that is that host's?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "launcher/allocation/host_names.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "launcher/check/ways.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Refused by whoever has the address, or left without an answer.
std::string address_finding(const PairFacts& pair) {
  if (pair.tried.empty()) return "no-address";
  const std::string words = lower(pair.reason);
  const auto says = [&words](const char* part) { return words.find(part) != std::string::npos; };
  if (says("another host") || says("no agent of this job")) return "address-of-another";
  if (says("refused") || says("prohibited")) return "ranks-refused";
  if (says("no route") || says("unreachable")) return "ranks-no-route";
  return "ranks-filtered";
}

// Seen from the other side: then no answer in time is no firewall's doing (ways.cc tells of it).
bool loses_packets_back(const CheckInput& input, const PairFacts& pair) {
  return std::any_of(input.pairs.begin(), input.pairs.end(), [&pair](const PairFacts& other) {
    return other.from == pair.to && other.to == pair.from && other.measure &&
           loses_packets(*other.measure);
  });
}

// Ranks of one host need no address.
void judge_interfaces(const CheckInput& input, Judgement* judgement) {
  if (input.hosts.size() < 2) return;
  std::vector<HostFact> unmet;
  for (const CheckedHost& host : input.hosts)
    if (!host.unmet_interfaces.empty() && (input.plan.ranks.empty() || !host.ranks.empty()))
      unmet.emplace_back(host.name, host.unmet_interfaces + " allows no address");
  add_grouped("interfaces-unmet", unmet, judgement);
}

using Pairs = std::vector<const PairFacts*>;

// Where the one at fault may be at either end.
bool is_of_the_way(const std::string& verdict) {
  return verdict == "ranks-refused" || verdict == "ranks-filtered" || verdict == "ranks-no-route";
}

// Of hosts that do not reach each other the one that is in most of the pairs; of equals one that is
// not reached, and of those the first.
std::size_t most_cut_off(const std::string& verdict, const Pairs& pairs) {
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> counts;  // in pairs, not reached
  for (const PairFacts* pair : pairs) {
    if (is_of_the_way(verdict)) ++counts[pair->from].first;
    ++counts[pair->to].first;
    ++counts[pair->to].second;
  }
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// "n[1-7] reach no address of n8 (connect to ...), and n8 none of n[1-7]"
std::string cut_off_in_words(const std::string& name, const std::vector<std::string>& from,
                             const std::vector<std::string>& to, const std::string& reason) {
  const std::string why = reason.empty() ? "" : " (" + reason + ")";
  if (from.empty()) return name + " reaches no address of " + hosts_text(to) + why;
  std::string words = hosts_text(from) + word_for(from.size(), " reaches", " reach") +
                      " no address of " + name + why;
  if (!to.empty()) words += ", and " + name + " none of " + hosts_text(to);
  return words;
}

// One finding for a host and all that it does not reach, or that do not reach it.
void tell_of_host(const CheckInput& input, const std::string& verdict, std::size_t host,
                  const Pairs& pairs, Judgement* judgement) {
  const std::string& name = input.hosts[host].name;
  std::vector<std::string> from, to, hosts{name};
  for (const PairFacts* pair : pairs) {
    const bool is_target = pair->to == host;
    const std::string& other = input.hosts[is_target ? pair->from : pair->to].name;
    (is_target ? from : to).push_back(other);
    if (std::find(hosts.begin(), hosts.end(), other) == hosts.end()) hosts.push_back(other);
  }
  const auto told = std::find_if(pairs.begin(), pairs.end(), [&](const PairFacts* pair) {
    return from.empty() || pair->to == host;
  });
  judgement->add(verdict, hosts, cut_off_in_words(name, from, to, (*told)->reason),
                 {{"HOST", name}, {"FROM", from.empty() ? name : from.front()}});
}

void judge_addresses(const CheckInput& input, Judgement* judgement) {
  judge_interfaces(input, judgement);
  std::map<std::string, Pairs> troubles;  // by what is wrong
  for (const PairFacts& pair : input.pairs)
    if (pair.reached.empty() && !loses_packets_back(input, pair))
      troubles[address_finding(pair)].push_back(&pair);
  for (auto& [verdict, pairs] : troubles) {
    while (!pairs.empty()) {
      const std::size_t host = most_cut_off(verdict, pairs);
      const auto others = std::stable_partition(pairs.begin(), pairs.end(), [&](const auto* pair) {
        return pair->to == host || (is_of_the_way(verdict) && pair->from == host);
      });
      tell_of_host(input, verdict, host, {pairs.begin(), others}, judgement);
      pairs.erase(pairs.begin(), others);
    }
  }
}

}  // namespace

const Probe kAddressProbe{
    "addresses",
    "each pair of hosts whose ranks talk: which addresses of the one the other reaches, proved by "
    "a "
    "secret of the job, so that an address that several hosts have (docker0) is never taken",
    {{"interfaces-unmet", Severity::kCannotStart,
      "HVRUN_INTERFACES, or a host's ifname=, allows none of the host's addresses",
      "its ranks end when they are to meet those of other hosts",
      "name an interface or a network that $HOST has: ssh $HOST ip -brief address"},
     {"ranks-refused", Severity::kCannotStart,
      "a host refuses TCP connections of another host of the job, on ports that its agent listens "
      "on",
      "ranks there cannot talk to each other",
      "let TCP pass between the hosts: ssh $HOST sudo nft list ruleset; or keep to ports that "
      "pass: "
      "HVRUN_PORT_RANGE=20000-20999"},
     {"ranks-filtered", Severity::kCannotStart,
      "a host does not answer another host of the job within 4.5 s on any address",
      "ranks there cannot talk to each other: a firewall drops the packets, or the network is not "
      "the one that joins them",
      "let TCP pass between the hosts, or name the network that joins them: HVRUN_INTERFACES=eth0"},
     {"ranks-no-route", Severity::kCannotStart, "a host has no route to another host of the job",
      "ranks there cannot talk to each other",
      "see 'ssh $FROM ip route', or name the network that joins them: HVRUN_INTERFACES=eth0"},
     {"address-of-another", Severity::kCannotStart,
      "who answers by a host's only addresses is not that host",
      "ranks would talk to another machine", "give each host an address of its own"},
     {"no-address", Severity::kCannotStart,
      "a host has no address but loopback and link-local ones, and the job has other hosts",
      "nobody can reach its ranks", "see 'ssh $HOST ip address'"}},
    judge_addresses};

}  // namespace hv::launcher
