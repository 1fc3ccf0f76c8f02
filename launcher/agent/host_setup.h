// What an agent has ready on its host for one job: the ranks' socket, the master port, the probe
// listener, the cgroup.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/probe_listener.h"
#include "launcher/agent/rendezvous/rank_socket.h"
#include "src/base/unique_fd.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The agent that holds a machine's mark, where its ranks' socket is not listed.
constexpr std::uint32_t kSomeHost = UINT32_MAX;

// Finds that two hosts of a job are one machine: the job's first agent there holds a name in the
// abstract namespace of Unix sockets, which every process in this network namespace shares. Ids of
// machines do not tell: cloned images have the same.
class MachineMark {
 public:
  // Call when this agent's socket for the ranks listens. The index of the host whose agent was
  // first here; nothing: this one.
  std::optional<std::uint32_t> take(const std::string& job_id, std::uint32_t host_index);

 private:
  UniqueFd socket_;
};

// The index of another host in the names of its ranks' sockets, as /proc/net/unix lists them.
std::optional<std::uint32_t> other_host_here(std::istream& sockets, const std::string& job_id,
                                             std::uint32_t own_index);

struct HostSetup {
  wire::Setup wanted;
  std::unique_ptr<RankSocket> socket;
  std::unique_ptr<ProbeListener> probe;
  UniqueFd held_port;
  std::uint16_t master_port = 0;
  JobCgroup cgroup;
  MachineMark mark;
  std::optional<std::uint32_t> first_here;  // MachineMark::take

  wire::SetUp reply() const;
};

// What could not be had, if anything.
std::optional<wire::Problem> set_up_host(EventLoop& loop, const wire::Setup& wanted,
                                         RankSocketCallbacks callbacks, HostSetup* setup);

}  // namespace hv::launcher
