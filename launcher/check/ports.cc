// Does HVRUN_PORT_RANGE have ports left for each host's ranks?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/net/port_range.h"

namespace hv::launcher {
namespace {

// A port for each rank and one for the agent; the first host also holds MASTER_PORT.
std::size_t ports_needed(const CheckInput& input, const ToldHost& one) {
  const bool is_first = one.host == &input.hosts.front();
  return one.ranks() + 1 + (is_first && input.spec.environment.master_port == 0 ? 1 : 0);
}

bool has_master_port(const CheckInput& input, const std::string& text) {
  const auto range = parse_port_range(text);
  return range && range->first <= input.spec.environment.master_port &&
         input.spec.environment.master_port <= range->last;
}

void judge_ports(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "ports", judgement);
  if (input.hosts.size() < 2) return;  // ranks of one host need no ports
  if (input.ranks_may_run) return;     // the facts do not tell the ranks' ports from others
  std::vector<HostFact> few;
  std::size_t most = 0;
  for (const ToldHost& one : hosts) {
    const wire::PortFacts& ports = one.told->ports;
    const std::size_t lost = ports.taken + (has_master_port(input, ports.range) ? 1 : 0);
    const std::size_t needed = ports_needed(input, one);
    if (ports.ports == 0 || one.ranks() == 0 || ports.ports >= lost + needed) continue;
    most = std::max(most, lost + needed);
    few.emplace_back(one.host->name,
                     std::to_string(ports.ports - std::min<std::size_t>(lost, ports.ports)) +
                         " of " + std::to_string(ports.ports) + " ports of " + ports.range +
                         " are free, and " + std::to_string(needed) + " are needed");
  }
  add_grouped("ports-few", few, judgement, {{"COUNT", std::to_string(most)}});
}

}  // namespace

const Probe kPortProbe{
    "ports",
    "the ports of HVRUN_PORT_RANGE that are taken on each host",
    {{"ports-few", Severity::kCannotStart,
      "HVRUN_PORT_RANGE has fewer free ports on a host than ranks run there, with one more for its "
      "agent, and another on the first host",
      "each rank listens on a port of its own for those of other hosts",
      "give it $COUNT ports or more: HVRUN_PORT_RANGE=20000-20999"}},
    judge_ports};

}  // namespace hv::launcher
