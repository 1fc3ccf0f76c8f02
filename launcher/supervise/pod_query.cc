// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/pod_query.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/kubectl_command.h"
#include "launcher/spawn/kubectl_spawner.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/query_command.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"
#include "src/wire/messages.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostPeriodBytes = 1 << 20;  // a line for each pod
constexpr std::size_t kReasonShown = 300;

bool is_in_pod(const LaunchContext& context) {
  return context.environment.get_filled("KUBERNETES_SERVICE_HOST").has_value();
}

// kubectl: reaches the hosts; without a program they are no pods.
asio::awaitable<void> ask_for_time_to_end(LaunchContext& context, KubectlCommand kubectl) {
  std::vector<std::string> pods;
  if (is_in_pod(context)) pods.push_back(own_hostname());
  if (kubectl.program.empty()) {
    kubectl.program = "kubectl";
  } else {
    for (const Host& host : context.job.members())
      if (!host.target.is_local) pods.push_back(host.target.name);
  }
  QueryCommand query{termination_period_words(kubectl, pods), "ask Kubernetes", kMostPeriodBytes,
                     kPodQueryTimeout};
  const QueryOutput output =
      co_await run_query(context.job.executor, context.environment, std::move(query));
  const auto period = shortest_termination_period(output.text);
  if (!period) {
    context.phase("not known how long Kubernetes leaves the pods: " +
                  printable(output.reason, kReasonShown));
    co_return;
  }
  context.phase("Kubernetes leaves a pod " + format_duration(*period) + " to end");
  context.job.signals.time_to_end = *period;
  context.job.send_to_all(
      wire::GraceAfterSignal{Seconds(context.job.grace(EndedBy::kScheduler)).count()});
}

}  // namespace

void begin_pod_query(LaunchContext& context) {
  Job& job = context.job;
  if (job.spec.ending.grace) return;
  KubectlCommand kubectl = kubectl_of_hosts(job.spec.access.remote_shell, context.list.reach);
  if (!is_in_pod(context) && kubectl.program.empty()) return;
  asio::co_spawn(job.executor, ask_for_time_to_end(context, std::move(kubectl)), asio::detached);
}

}  // namespace hv::launcher
