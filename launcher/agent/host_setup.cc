// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_setup.h"

#include "src/base/bounded_seconds.h"
#include "src/net/socket.h"

namespace hv::launcher {

wire::SetUp HostSetup::reply() const {
  wire::SetUp reply;
  reply.agent_socket = socket->name();
  reply.master_port = master_port;
  reply.probe_port = probe ? probe->port() : 0;
  reply.has_cgroup = cgroup.exists();
  return reply;
}

std::optional<wire::Problem> set_up_host(EventLoop& loop, const wire::Setup& wanted,
                                         RankSocketCallbacks callbacks, HostSetup* setup) {
  setup->wanted = wanted;
  setup->socket = std::make_unique<RankSocket>(loop, wanted.key, std::move(callbacks),
                                               bounded_seconds(wanted.stall_s));
  if (const Status status = setup->socket->listen(wanted.job_id, wanted.host_index); !status.ok()) {
    return wire::Problem{status.message, "check that /tmp can be written there"};
  }
  if (wanted.hold_port) {
    const bool is_port = wanted.master_port >= 0 && wanted.master_port <= 65535;
    const Status status =
        is_port ? hold_tcp_port(static_cast<std::uint16_t>(wanted.master_port), &setup->held_port,
                                &setup->master_port)
                : Status{StatusCode::kArgument,
                         "master port " + std::to_string(wanted.master_port) + " is no port"};
    if (!status.ok()) {
      return wire::Problem{
          "reserve the ranks' meeting port: " + status.message,
          "choose another one with --master-port, or none: then a free one is taken"};
    }
  }
  if (wanted.probe) {
    setup->probe = std::make_unique<ProbeListener>(loop, wanted.key,
                                                   probe_purpose(wanted.job_id, wanted.host_index));
    if (const Status status = setup->probe->listen(); !status.ok()) {
      return wire::Problem{"listen for the other hosts' agents: " + status.message, ""};
    }
  }
  setup->cgroup = JobCgroup::create(wanted.job_id, wanted.host_index);
  return std::nullopt;
}

}  // namespace hv::launcher
