// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/failure_probe.h"

#include <functional>

#include "launcher/check/probe.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Hosts whose drivers are asked: to most of them hvrun must send the program for it.
constexpr std::size_t kMostAskedOfDrivers = kSentAtOnce;

// The host's agent is of this build and does not leave. After a reported problem it can still check
// the host.
bool can_be_asked(const Host& host) {
  return host.has_agent() && host.answers.greeting && !host.phase.unrequested_end() &&
         is_same_build(host.answers.greeting->hello);
}

// The inventory program is missing there, and hvrun has not sent it yet.
bool lacks_program(const Host& host) {
  const wire::InventoryReply* const inventory = host.answers.inventory.reply();
  return can_be_asked(host) && inventory && inventory->is_missing && inventory->problem.empty();
}

// The host's failure is what its agent reported, not that it has none.
bool has_reported_problem(const Host& host) {
  return host.phase.is<HostFailed>() && can_be_asked(host);
}

bool has_answered(const Host& host) {
  if (!can_be_asked(host)) return true;
  return host.answers.checks.reply() && !host.answers.inventory.is_open() && !lacks_program(host);
}

// Agents know the probes of hosts by the same names. The probes "nccl" and "memory" also need the
// list of Python packages: it has NCCL and the users of /dev/shm.
std::vector<std::string> probes_of_agents(const FittingProbes& fitting) {
  std::set<std::string> names = fitting.names;
  if (names.count("nccl") > 0 || names.count("memory") > 0) names.insert("python");
  return {names.begin(), names.end()};
}

// Begins with the host of the failure. A host that answered before is asked again: its GPUs may
// have failed since.
void ask_drivers(Job& job, std::size_t first, Duration time) {
  const auto members = job.members();
  std::size_t asked = 0;
  for (std::size_t i = 0; i < members.size() && asked < kMostAskedOfDrivers; ++i) {
    Host& host = members[static_cast<std::ptrdiff_t>((first + i) % members.size())];
    if (!can_be_asked(host) || host.answers.inventory.is_open()) continue;
    ask_for_inventory(&host, {time, {}});
    ++asked;
  }
}

}  // namespace

asio::awaitable<void> probe_after_failure(LaunchContext& context, const FittingProbes& fitting,
                                          Duration time, std::size_t failed_host) {
  Job& job = context.job;
  const bool asks_drivers =
      fitting.asks_drivers && job.spec.access.inventory_timeout > Duration::zero();
  if (!fitting.asks_hosts && !asks_drivers) co_return;
  const TimePoint deadline = now() + time;
  const wire::CheckRequest request =
      check_request(context, time - kProbeAnswerTime, probes_of_agents(fitting));
  for (Host& host : job.members()) {
    if (!can_be_asked(host)) continue;
    host.answers.checks.ask();
    host.send(request);
  }
  if (asks_drivers) ask_drivers(job, failed_host, time - kProbeAnswerTime);
  const auto is_due = [&job] {
    return job.all_hosts(has_answered) || !job.all_hosts(std::not_fn(lacks_program));
  };
  while (co_await job.until(is_due, deadline) && !job.all_hosts(has_answered)) {
    const Duration left = deadline - now() - kProbeAnswerTime;
    if (left <= Duration::zero()) co_return;
    for (Host& host : job.members())
      if (lacks_program(host)) ask_with_own_program(&host, {left, {}});
  }
}

CheckReport findings_after_failure(const LaunchContext& context,
                                   const std::set<std::string>& probes) {
  const Job& job = context.job;
  CheckInput input;
  input.ranks_may_run = job.stage.may_ranks_run();
  input.spec = job.spec;
  input.plan = job.plan();
  input.hosts = checked_hosts(context);
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const Host& host = job.members()[static_cast<std::ptrdiff_t>(i)];
    const HostLost* const lost = host.phase.lost();
    if (lost && lost->sweep_error)
      input.hosts[i].failure = lost->sweep_error;
    else if (host.answers.checks.reply() || has_reported_problem(host))
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
