// HostSweep: a fresh agent on a host that was lost ends what the agent that went without goodbye
// may have left, and looks at what may have ended that one.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/host_link.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class HostSweep {
 public:
  // All outlive this. look: what such an agent is to look at, besides. warn: gets a line without
  // "hvrun: ".
  HostSweep(Job& job, Spawner& spawner, LinkObserver& observer,
            std::function<wire::CheckRequest()> look, std::function<void(const std::string&)> warn)
      : job_(job),
        spawner_(spawner),
        observer_(observer),
        look_(std::move(look)),
        warn_(std::move(warn)) {}

  // Begins with hosts that have been lost since the last call, if ranks may run there.
  void look_for_lost_hosts();
  // A host that was lost with its network cannot be swept, and is not waited for beyond deadline():
  // its own agent ends everything by itself.
  bool is_awaited() const { return under_way_ > 0 && now() < deadline_; }
  TimePoint deadline() const { return deadline_; }

 private:
  boost::asio::awaitable<void> sweep(std::size_t host);

  Job& job_;
  Spawner& spawner_;
  LinkObserver& observer_;
  std::function<wire::CheckRequest()> look_;
  std::function<void(const std::string&)> warn_;
  std::vector<bool> begun_;  // by host
  int under_way_ = 0;
  TimePoint deadline_;  // of the last one begun
};

}  // namespace hv::launcher
