// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_sweep.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {

namespace asio = boost::asio;

void HostSweep::sweep_lost_hosts() {
  if (!job_.stage.may_ranks_run()) return;
  for (Host& host : job_.members())
    if (host.phase.begin_sweep()) asio::co_spawn(job_.executor, sweep(host), asio::detached);
}

asio::awaitable<void> HostSweep::sweep(Host& host) {
  ++under_way_;
  deadline_ = now() + kSweepTimeout;
  wire::LostAgent lost;  // before the second agent's greeting takes the place of the first one's
  if (const auto& greeting = host.answers.greeting)
    lost = {greeting->hello.agent, greeting->hello.guard, greeting->hello.cgroup};
  if (host.answers.set_up) lost.had_cgroup_of_job = host.answers.set_up->has_cgroup;
  try {
    auto channel = co_await spawner_.start(host.target);
    host.link = std::make_shared<HostLink>(job_.executor, LinkId{host.id, 1}, std::move(channel),
                                           job_.spec.ending.lost_after, observer_);
    host.link->start();
    host.link->send(checks_());
    wire::SetupRequest setup;
    setup.job_id = job_.identity.id;
    setup.key = job_.identity.key;
    setup.host_id = static_cast<std::uint32_t>(host.id);
    setup.sweep = std::move(lost);
    host.link->send(setup);
    co_await job_.until([&host] { return !host.phase.is_sweeping(); }, now() + kSweepTimeout,
                        false);
    host.phase.finish_sweep();
  } catch (const Error& error) {
    host.phase.finish_sweep(error);  // the text of the job's end has it
  }
  --under_way_;
  job_.change.notify();
}

}  // namespace hv::launcher
