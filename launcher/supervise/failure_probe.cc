// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/failure_probe.h"

#include <functional>

#include "launcher/check/probe.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// So many hosts' drivers are asked: most need the program for that sent.
constexpr std::size_t kMostAskedOfDrivers = kSentAtOnce;

// One that only said that it cannot do what it was asked can still look around.
bool can_be_asked(const HostState& host) {
  return host.is_there() && host.hello && !host.error && !host.gave_up;
}

// And hvrun has not sent it yet.
bool lacks_program(const HostState& host) {
  return can_be_asked(host) && host.inventory && host.inventory->is_missing &&
         host.inventory->problem.empty();
}

bool has_answered(const HostState& host) {
  if (!can_be_asked(host)) return true;
  const bool is_waited_for = host.is_asked_for_inventory && !host.inventory;
  return host.told && !is_waited_for && !lacks_program(host);
}

// Those of hosts have the names of what agents look at; NCCL, and who uses /dev/shm, is told by
// Python's packages.
std::vector<std::string> probes_of_agents(const FittingProbes& fitting) {
  std::set<std::string> names = fitting.names;
  if (names.count("nccl") > 0 || names.count("memory") > 0) names.insert("python");
  return {names.begin(), names.end()};
}

// On the host of the failure first. Who was asked before is asked again: its GPUs may have failed
// since.
void ask_drivers(Job& job, std::size_t first, Duration time) {
  std::size_t asked = 0;
  for (std::size_t i = 0; i < job.hosts.size() && asked < kMostAskedOfDrivers; ++i) {
    HostState& host = job.hosts[(first + i) % job.hosts.size()];
    if (!can_be_asked(host) || (host.is_asked_for_inventory && !host.inventory)) continue;
    ask_for_inventory(&host, {time, {}});
    ++asked;
  }
}

}  // namespace

asio::awaitable<void> look_after_failure(LaunchContext& context, const FittingProbes& fitting,
                                         Duration time, std::size_t failed_host) {
  Job& job = context.job;
  const bool asks_drivers = fitting.asks_drivers && job.spec.inventory_timeout > Duration::zero();
  if (!fitting.asks_hosts && !asks_drivers) co_return;
  const TimePoint deadline = now() + time;
  const wire::CheckRequest request =
      check_request(context, time - kProbeAnswerTime, probes_of_agents(fitting));
  for (HostState& host : job.hosts) {
    if (!can_be_asked(host)) continue;
    host.told.reset();
    host.link->send(request);
  }
  if (asks_drivers) ask_drivers(job, failed_host, time - kProbeAnswerTime);
  const auto is_due = [&job] {
    return job.all_hosts(has_answered) || !job.all_hosts(std::not_fn(lacks_program));
  };
  while (co_await job.until(is_due, deadline) && !job.all_hosts(has_answered)) {
    const Duration left = deadline - now() - kProbeAnswerTime;
    if (left <= Duration::zero()) co_return;
    for (HostState& host : job.hosts)
      if (lacks_program(host)) ask_with_own_program(&host, {left, {}});
  }
}

CheckReport found_after_failure(const LaunchContext& context, const std::set<std::string>& probes) {
  CheckInput input;
  input.ranks_may_run = context.job.ranks_may_run;
  input.spec = context.job.spec;
  input.plan = context.job.plan;
  input.hosts = checked_hosts(context);
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const HostState& host = context.job.hosts[i];
    if (host.after_loss)
      input.hosts[i].failure = host.after_loss;
    else if (host.told || (host.problem && host.is_there()))
      input.hosts[i].failure.reset();
  }
  return judge(input, probes);
}

const std::set<std::string>& probes_of_lost_host() {
  static const std::set<std::string> probes{"folders", "limits", "memory", "reach"};
  return probes;
}

wire::CheckRequest request_to_lost_host(const LaunchContext& context) {
  std::vector<std::string> probes(probes_of_lost_host().begin(), probes_of_lost_host().end());
  std::erase(probes, "reach");
  return check_request(context, kProbesAfterHostLoss, std::move(probes));
}

}  // namespace hv::launcher
