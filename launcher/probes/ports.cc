// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/host_probe.h"

#include "src/net/port_range.h"
#include "src/net/socket.h"

namespace hv::launcher {

// Binds each port as a rank would, without listening, and releases it at once.
void inspect_ports(const wire::CheckRequest& request, const Environment&, wire::CheckReply* reply) {
  wire::PortFacts& facts = reply->ports;
  facts.range = request.port_range;
  const auto range = parse_port_range(request.port_range);
  if (!range || range->is_any()) return;
  facts.ports = static_cast<std::uint32_t>(range->count());
  for (int port = range->first; port <= range->last; ++port) {
    UniqueFd holder;
    std::uint16_t bound = 0;
    if (!hold_tcp_port(static_cast<std::uint16_t>(port), &holder, &bound).ok()) ++facts.taken;
  }
}

}  // namespace hv::launcher
