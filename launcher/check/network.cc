// Do the interfaces by which the job's hosts talk fit together, and are their RDMA ports up?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"

namespace hv::launcher {
namespace {

void judge_mtu(const CheckInput& input, Judgement* judgement) {
  std::vector<HostFact> facts;
  std::map<std::string, std::string> names;  // of interfaces, by host
  for (const auto& [host, interface] : interfaces_in_use(input)) {
    facts.emplace_back(input.hosts[host].name, "MTU " + std::to_string(interface->mtu));
    names[input.hosts[host].name] = interface->name;
  }
  const auto groups = group_facts(facts);
  if (groups.size() < 2) return;
  const std::vector<std::string> odd = odd_hosts(groups);
  judgement->add("mtu-differs", odd, groups_as_text(groups),
                 {{"INTERFACE", names[odd.front()]}, {"MTU", groups[0].fact.substr(4)}});
}

// Of adapters that are up on most hosts.
void judge_rdma(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::map<std::string, std::vector<HostFact>> by_port;
  for (const ToldHost& host : hosts)
    for (const wire::RdmaPortFacts& port : host.told->network.rdma)
      by_port[port.adapter + " port " + std::to_string(port.port)].emplace_back(
          host.host->name, port.state + (port.physical.empty() ? "" : ", " + port.physical));
  for (const auto& [port, facts] : by_port) {
    std::vector<HostFact> down;
    for (const auto& [host, state] : facts)
      if (!state.starts_with("ACTIVE")) down.emplace_back(host, port + " is " + state);
    if (2 * down.size() < facts.size())
      add_grouped("rdma-port-down", down, judgement, {{"ADAPTER", port.substr(0, port.find(' '))}});
  }
}

void judge_network(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "network", judgement);
  judge_mtu(input, judgement);
  judge_rdma(hosts, judgement);
}

}  // namespace

const Probe kNetworkProbe{
    "network",
    "the interfaces by which hosts reach each other, and the ports of RDMA adapters",
    {{"mtu-differs", Severity::kHarms,
      "interfaces by which the hosts reach each other have different MTUs",
      "what TCP does not see to itself (RDMA, UCX and whatever sends datagrams) loses packets that "
      "are too large for the other side, and TCP falls to the smaller size",
      "ssh $HOST sudo ip link set dev $INTERFACE mtu $MTU"},
     {"rdma-port-down", Severity::kHarms,
      "an RDMA port that is active on most hosts is not on others",
      "NCCL and MPI fall back to TCP for all ranks, or fail when they meet",
      "ssh $HOST ibstat $ADAPTER; see its cable and the subnet manager"}},
    judge_network};

}  // namespace hv::launcher
