// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_sweep.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {

namespace asio = boost::asio;

void HostSweep::look_for_lost_hosts() {
  if (!job_.ranks_may_run) return;
  begun_.resize(job_.hosts.size());
  for (std::size_t host = 0; host < job_.hosts.size(); ++host) {
    if (!job_.hosts[host].lost || begun_[host]) continue;
    begun_[host] = true;
    asio::co_spawn(job_.executor, sweep(host), asio::detached);
  }
}

asio::awaitable<void> HostSweep::sweep(std::size_t index) {
  ++under_way_;
  deadline_ = now() + kSweepTimeout;
  HostTarget target = job_.hosts[index].target;
  try {
    auto channel = co_await spawner_.start(target);
    HostState& host = job_.hosts[index];
    host.empty = false;
    host.link = std::make_shared<HostLink>(job_.executor, static_cast<int>(index),
                                           std::move(channel), job_.spec.lost_after, observer_);
    host.link->start();
    host.link->send(look_());
    wire::Setup setup;
    setup.job_id = job_.id;
    setup.key = job_.key;
    setup.host_index = static_cast<std::uint32_t>(index);
    setup.sweep = true;
    host.link->send(setup);
    co_await job_.until([&host] { return host.empty || host.link->ended(); }, now() + kSweepTimeout,
                        false);
  } catch (const Error& error) {
    job_.hosts[index].after_loss = error;
    warn_("warning: what job " + job_.id + " may have left on host " + target.name +
          " could not be swept: " + error.what());
  }
  --under_way_;
  job_.change.notify();
}

}  // namespace hv::launcher
