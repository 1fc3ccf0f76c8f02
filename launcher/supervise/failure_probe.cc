// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/failure_probe.h"

#include <algorithm>

#include "launcher/check/probe.h"
#include "launcher/supervise/host_look.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// For what hosts that hang have told by then to arrive.
constexpr Duration kTimeOfAnswer = std::chrono::milliseconds(400);
constexpr Duration kTimeOfProbe = std::chrono::seconds(2);  // after the loss of a host

// One that only said that it cannot do what it was asked can still look around.
bool can_be_asked(const HostState& host) {
  return host.is_there() && host.hello && !host.error && !host.gave_up;
}

bool has_told_of_drivers(const HostState& host) {
  return !can_be_asked(host) || !host.is_asked_for_inventory || host.inventory;
}

bool has_answered(const HostState& host) {
  return !can_be_asked(host) || (host.told && has_told_of_drivers(host));
}

// Those of hosts have the names of what agents look at; NCCL, and who uses /dev/shm, is told by
// Python's packages.
std::vector<std::string> probes_of_agents(const FittingProbes& fitting) {
  std::set<std::string> names = fitting.names;
  if (names.count("nccl") > 0 || names.count("memory") > 0) names.insert("python");
  return {names.begin(), names.end()};
}

}  // namespace

asio::awaitable<void> look_after_failure(LaunchContext& context, const FittingProbes& fitting,
                                         Duration time) {
  if (!fitting.asks_hosts && !fitting.asks_drivers) co_return;
  Job& job = context.job;
  const TimePoint deadline = now() + time;
  const wire::CheckRequest request =
      check_request(context, time - kTimeOfAnswer, probes_of_agents(fitting));
  for (HostState& host : job.hosts) {
    if (!can_be_asked(host)) continue;
    host.told.reset();
    host.link->send(request);
    if (!fitting.asks_drivers || host.is_asked_for_inventory) continue;
    ask_for_inventory(&host, time - kTimeOfAnswer);
  }
  co_await job.until([&job] { return job.all_hosts(has_told_of_drivers); }, deadline);
  for (HostState& host : job.hosts) {
    const Duration left = deadline - now() - kTimeOfAnswer;
    if (can_be_asked(host) && host.inventory && host.inventory->is_missing &&
        left > Duration::zero())
      ask_with_own_program(&host, left);
  }
  co_await job.until([&job] { return job.all_hosts(has_answered); }, deadline);
}

CheckReport found_after_failure(const LaunchContext& context, const std::set<std::string>& probes) {
  CheckInput input;
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
  CheckReport report = judge(input, probes);
  // A driver that hangs tells of a failure; a kernel's log that only root may read does not.
  std::erase_if(report.not_probed, [](const NotProbed& gap) { return gap.probe == "gpu-health"; });
  return report;
}

const std::set<std::string>& probes_of_lost_host() {
  static const std::set<std::string> probes{"folders", "limits", "memory", "reach"};
  return probes;
}

wire::CheckRequest request_to_lost_host(const LaunchContext& context) {
  std::vector<std::string> probes(probes_of_lost_host().begin(), probes_of_lost_host().end());
  std::erase(probes, "reach");
  return check_request(context, kTimeOfProbe, std::move(probes));
}

}  // namespace hv::launcher
