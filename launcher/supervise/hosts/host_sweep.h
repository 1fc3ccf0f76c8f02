// HostSweep: a second agent on a lost host ends what the first one may have left there, and checks
// what may have ended it.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <functional>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/host_link.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class HostSweep {
 public:
  // All outlive this. checks: what such an agent also has to check.
  HostSweep(Job& job, Spawner& spawner, LinkObserver& observer,
            std::function<wire::CheckRequest()> checks)
      : job_(job), spawner_(spawner), observer_(observer), checks_(std::move(checks)) {}

  // Begins to sweep hosts that have been lost since the last call, if ranks may run there.
  void sweep_lost_hosts();
  // A host that was lost with its network cannot be swept and is not awaited beyond deadline(): its
  // own agent ends everything there.
  bool is_awaited() const { return under_way_ > 0 && now() < deadline_; }
  TimePoint deadline() const { return deadline_; }

 private:
  boost::asio::awaitable<void> sweep(Host& host);

  Job& job_;
  Spawner& spawner_;
  LinkObserver& observer_;
  std::function<wire::CheckRequest()> checks_;
  int under_way_ = 0;
  TimePoint deadline_;  // of the last one begun
};

}  // namespace hv::launcher
