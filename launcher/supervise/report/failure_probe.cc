// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/failure_probe.h"

#include <functional>

#include "hvrun_version.h"
#include "launcher/check/probe.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// So many hosts' drivers are asked: most need the program for that sent.
constexpr std::size_t kMostAskedOfDrivers = kSentAtOnce;

// A host without an agent that can check it: no agent of this build, or one that is leaving. An
// agent that reported a problem can still check its host.
bool can_be_asked(const Host& host) {
  return host.is_there() && host.answers.greeting && !host.phase.unrequested_end() &&
         host.answers.greeting->hello.build == HVRUN_BUILD_ID;
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

// Probes of hosts have the names of what agents check. NCCL, and who uses /dev/shm, is found among
// Python's packages.
std::vector<std::string> probes_of_agents(const FittingProbes& fitting) {
  std::set<std::string> names = fitting.names;
  if (names.count("nccl") > 0 || names.count("memory") > 0) names.insert("python");
  return {names.begin(), names.end()};
}

// On the host of the failure first. A host that answered before is asked again: its GPUs may have
// failed since.
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
    else if (host.answers.checks.reply() || (has_reported_problem(host) && host.is_there()))
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
