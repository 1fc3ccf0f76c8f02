// HostSetup: what an agent has prepared on its host for one job: the ranks' socket, the master
// port, the probe listener, the cgroup, what Python programs begin with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/machine_mark.h"
#include "launcher/agent/probe_listener.h"
#include "launcher/agent/ranks/python_start.h"
#include "launcher/agent/rendezvous/rank_socket.h"
#include "src/base/unique_fd.h"
#include "src/wire/messages.h"

namespace hv::launcher {

struct HostSetup {
  wire::SetupRequest request;
  std::unique_ptr<RankSocket> socket;
  std::unique_ptr<ProbeListener> probe;
  UniqueFd held_port;
  std::uint16_t master_port = 0;
  JobCgroup cgroup;
  MachineMark mark;
  std::optional<std::uint32_t> first_here;  // MachineMark::claim
  PythonStart python_start;

  wire::SetupReply reply() const;
};

// Prepares the host for the job. Returns the first problem, if any.
std::optional<wire::Problem> set_up_host(EventLoop& loop, const wire::SetupRequest& request,
                                         RankSocketCallbacks callbacks, HostSetup* setup);

}  // namespace hv::launcher
