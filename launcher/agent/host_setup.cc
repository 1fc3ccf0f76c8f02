// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_setup.h"

#include "src/base/bounded_seconds.h"
#include "src/base/text.h"
#include "src/net/socket.h"

namespace hv::launcher {
namespace {

constexpr const char* kMorePorts =
    "give HVRUN_PORT_RANGE two more free ports than ranks run on one host, or see who has them: ss "
    "-ltnp";

Status hold_master_port(const wire::SetupRequest& request, const PortRange& ports,
                        HostSetup* setup) {
  if (request.master_port == 0)
    return hold_tcp_port_in(ports, &setup->held_port, &setup->master_port);
  if (request.master_port < 0 || request.master_port > 65535)
    return {StatusCode::kArgument,
            "master port " + std::to_string(request.master_port) + " is no port"};
  return hold_tcp_port(static_cast<std::uint16_t>(request.master_port), &setup->held_port,
                       &setup->master_port);
}

}  // namespace

wire::SetupReply HostSetup::reply() const {
  wire::SetupReply reply;
  reply.agent_socket = socket->name();
  reply.master_port = master_port;
  reply.probe_port = probe ? probe->port() : 0;
  reply.has_cgroup = cgroup.exists();
  reply.shares_machine = first_here.has_value();
  reply.first_here = first_here.value_or(0);
  return reply;
}

std::optional<wire::Problem> set_up_host(EventLoop& loop, const wire::SetupRequest& request,
                                         RankSocketCallbacks callbacks, HostSetup* setup) {
  setup->request = request;
  setup->socket =
      std::make_unique<RankSocket>(loop, request.key, std::move(callbacks),
                                   StallLimits{bounded_seconds(request.stalls.warning_s),
                                               bounded_seconds(request.stalls.end_s)});
  if (const Status status = setup->socket->listen(request.job_id, request.host_id); !status.ok()) {
    return wire::Problem{status.message, "check that /tmp can be written there"};
  }
  setup->first_here = setup->mark.claim(request.job_id, request.host_id);
  const auto ports = parse_port_range(request.port_range);
  if (!ports)
    return wire::Problem{"take ports: '" + printable(request.port_range) + "' is no range of ports",
                         "give HVRUN_PORT_RANGE one such as 20000-20099"};
  if (request.hold_port) {
    if (const Status status = hold_master_port(request, *ports, setup); !status.ok()) {
      return wire::Problem{"reserve the ranks' meeting port: " + status.message,
                           request.master_port == 0 && !ports->is_any()
                               ? kMorePorts
                               : "choose another one with --master-port, or none: then a free one "
                                 "is taken"};
    }
  }
  if (request.probe) {
    setup->probe = std::make_unique<ProbeListener>(loop, request.key,
                                                   probe_purpose(request.job_id, request.host_id));
    if (const Status status = setup->probe->listen(*ports); !status.ok()) {
      return wire::Problem{"listen for the other hosts' agents: " + status.message,
                           ports->is_any() ? "" : kMorePorts};
    }
  }
  setup->cgroup = JobCgroup::create(request.job_id, request.host_id);
  return std::nullopt;
}

}  // namespace hv::launcher
