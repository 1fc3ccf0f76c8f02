// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_look.h"

#include <algorithm>
#include <utility>

#include "launcher/plan/rank_environment.h"
#include "launcher/supervise/launch_message.h"

namespace hv::launcher {
namespace {

constexpr double kNanosecondsInSecond = 1e9;

bool has_named_gpus(const HostList& list, std::size_t entry) {
  return !list.entries[entry].gpus.empty() ||
         std::any_of(list.rank_places.begin(), list.rank_places.end(),
                     [entry](const RankPlace& place) {
                       return place.entry == entry && !place.gpus.empty();
                     });
}

CheckedHost checked(const LaunchContext& context, std::size_t index) {
  const Job& job = context.job;
  const HostList& list = context.list;
  const HostState& host = job.hosts[index];
  CheckedHost result;
  result.name = host.target.name;
  if (!list.this_machine) {
    const std::size_t entry = job.plan.hosts.empty() ? index : job.plan.hosts[index].entry;
    result.origin = list.entries[entry].origin;
    result.has_named_gpus = has_named_gpus(list, entry);
  }
  result.failure = failure_of(host, "check the host", context.spawner);
  result.ranks = host.ranks;
  if (!host.hello) return result;
  result.seconds_to_agent = std::chrono::duration<double>(host.hello_at - job.begun).count();
  result.facts = host.hello->facts;
  if (const std::string wanted = interfaces_of(context, index);
      allows_no_address(*result.facts, wanted))
    result.unmet_interfaces = wanted;
  result.is_asked_for_inventory = host.is_asked_for_inventory;
  result.inventory = host.inventory;
  result.told = host.told;
  const HostLink::ClockReading clock = host.link->clock();
  result.clock_ahead_s = static_cast<double>(clock.ahead_ns) / kNanosecondsInSecond;
  // One that came unasked was on its way no longer than its host has taken to answer.
  result.clock_error_s = clock.round_trip_ns == HostLink::kUnknownRoundTrip
                             ? result.seconds_to_agent
                             : static_cast<double>(clock.round_trip_ns) / 2 / kNanosecondsInSecond;
  return result;
}

}  // namespace

bool is_reached(const HostState& host) { return host.hello && !has_failed(host); }

wire::CheckRequest check_request(const LaunchContext& context, Duration time,
                                 std::vector<std::string> probes) {
  const Job& job = context.job;
  const CommonEnvironment environment = common_environment(job.spec, context.environment);
  wire::CheckRequest request;
  request.timeout_s = std::chrono::duration<double>(time).count();
  request.probes = std::move(probes);
  request.programs = programs_of(job.spec, environment);
  request.environment = environment.entries;
  request.host_variables = environment.host_variables;
  request.port_range = job.port_range;
  return request;
}

std::vector<CheckedHost> checked_hosts(const LaunchContext& context) {
  std::vector<CheckedHost> hosts;
  for (std::size_t i = 0; i < context.job.hosts.size(); ++i) hosts.push_back(checked(context, i));
  return hosts;
}

}  // namespace hv::launcher
