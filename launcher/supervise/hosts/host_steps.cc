// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_steps.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "hvrun_version.h"
#include "launcher/plan/gpu_inventory.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/plan/rank_resources.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/hosts/same_machines.h"
#include "launcher/supervise/hosts/start_failures.h"
#include "launcher/supervise/launch_message.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

void throw_if_stopped(const Job& job) {
  if (job.stop) throw Interrupted{};
}

asio::awaitable<void> connect_host(LaunchContext& context, std::size_t index) {
  Job& job = context.job;
  try {
    auto channel = co_await context.spawner.start(job.hosts[index].target);
    if (!context.is_connecting) co_return;  // too late, and hosts have other numbers by now
    HostState& host = job.hosts[index];
    host.link =
        std::make_shared<HostLink>(job.executor, static_cast<int>(index), std::move(channel),
                                   job.spec.lost_after, context.observer);
    host.link->start();
  } catch (const Error& error) {
    if (context.is_connecting) job.hosts[index].error = error;
  }
  job.change.notify();
}

}  // namespace

bool has_failed(const HostState& host) { return host.error || host.lost || host.problem; }

std::optional<Error> failure_of(const HostState& host, const std::string& doing, Spawner& spawner) {
  if (host.error) return host.error;
  if (host.problem) return Error(ErrorKind::kStart, host.problem->what, host.problem->hint);
  if (host.lost)
    return Error(ErrorKind::kHostLost, doing + ": " + host.lost_reason,
                 spawner.advice_if_lost(host.target));
  return std::nullopt;
}

namespace {

// All hosts that failed, each trouble once; throws. The first trouble is the Error, the rest are
// announced.
[[noreturn]] void throw_failures(LaunchContext& context, const std::string& doing) {
  std::vector<HostFailure> failures;
  for (const HostState& host : context.job.hosts)
    if (const auto failure = failure_of(host, doing, context.spawner))
      failures.push_back({host.target.name, *failure});
  const std::vector<Error> errors = fold_failures(failures);
  for (std::size_t i = 1; i < errors.size(); ++i) {
    const std::string& hint = errors[i].hint();
    context.warn(std::string("error: ") + errors[i].what() +
                 (hint.empty() ? "" : "\n  try: " + hint));
  }
  throw Error(errors.at(0));
}

// Of a check: who is silent has failed, and the others go on.
void leave_out(LaunchContext& context, const std::string& doing,
               const std::function<bool(const HostState&)>& done) {
  for (HostState& host : context.job.hosts) {
    if (has_failed(host) && !host.error) host.error = failure_of(host, doing, context.spawner);
    if (done(host) || has_failed(host)) continue;
    host.error = Error(ErrorKind::kTimeout, doing + ": no answer within --start-timeout",
                       "raise --start-timeout, or look what keeps that host busy");
    if (host.link) host.link->close();
  }
}

}  // namespace

asio::awaitable<void> await_hosts(LaunchContext& context, const std::string& doing,
                                  std::function<bool(const HostState&)> done, TimePoint deadline) {
  Job& job = context.job;
  const auto any_failed = [&job] {
    return std::any_of(job.hosts.begin(), job.hosts.end(), has_failed);
  };
  const auto all_answered = [&job, &done] {
    return job.all_hosts([&done](const HostState& host) { return done(host) || has_failed(host); });
  };
  const bool goes_on = context.goes_on_without_hosts;
  co_await job.until([&] { return all_answered() || (any_failed() && !goes_on); }, deadline);
  throw_if_stopped(job);
  if (goes_on) {
    leave_out(context, doing, done);
    co_return;
  }
  if (any_failed() && !all_answered()) {
    co_await job.until(all_answered, std::min(deadline, now() + kOtherFailures));
    throw_if_stopped(job);
  }
  if (any_failed()) throw_failures(context, doing);
  if (all_answered()) co_return;
  std::vector<std::string> silent;
  for (const HostState& host : job.hosts) {
    if (!done(host)) silent.push_back(host.target.name);
  }
  throw Error(ErrorKind::kTimeout,
              doing + ": no answer from " + join_some(silent) + " within --start-timeout",
              "raise --start-timeout, or look what keeps those hosts busy");
}

TimePoint answer_deadline(const Job& job) { return now() + job.spec.start_timeout + kAnswerMargin; }

asio::awaitable<void> connect_hosts(LaunchContext& context) {
  Job& job = context.job;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    asio::co_spawn(job.executor, connect_host(context, i), asio::detached);
  }
  co_await await_hosts(
      context, "start the agent", [](const HostState& host) { return host.hello.has_value(); },
      answer_deadline(job));
  context.is_connecting = false;
  bool is_one_build = true;
  for (HostState& host : job.hosts) {
    if (has_failed(host)) continue;
    const wire::Hello& hello = *host.hello;
    if (hello.protocol == wire::kAgentProtocol && hello.build == HVRUN_BUILD_ID) continue;
    host.error = Error(ErrorKind::kStart,
                       "host " + host.target.name + " runs an agent of another build (" +
                           printable(hello.build) + ", this hvrun is of " HVRUN_BUILD_ID ")",
                       "install hvrun and hvrun-agent together");
    is_one_build = false;
  }
  if (!is_one_build && !context.goes_on_without_hosts) throw_failures(context, "start the agent");
}

namespace {

InventoryTime time_of_launch(const Job& job) {
  return {job.spec.inventory_timeout, " (HVRUN_INVENTORY_TIMEOUT)"};
}

void send_inventory_request(HostState* host, const InventoryTime& time,
                            const std::string& program) {
  host->inventory.reset();
  host->is_asked_for_inventory = true;
  wire::InventoryRequest request;
  request.timeout_s = std::chrono::duration<double>(time.timeout).count();
  request.whose_time = time.whose;
  request.program = program;
  host->link->send(request);
}

asio::awaitable<void> await_inventories(LaunchContext& context) {
  co_await await_hosts(
      context, "ask the drivers of GPUs",
      [](const HostState& host) { return !host.is_asked_for_inventory || host.inventory; },
      answer_deadline(context.job) + context.job.spec.inventory_timeout);
}

}  // namespace

void ask_for_inventory(HostState* host, const InventoryTime& time) {
  send_inventory_request(host, time, "");
}

bool ask_with_own_program(HostState* host, const InventoryTime& time) {
  const auto program = helper_program("hvrun-inventory", host->hello->facts.machine);
  if (program) {
    send_inventory_request(host, time, *program);
    return true;
  }
  host->inventory->problem =
      "hvrun-inventory is neither there nor, for its kind of machine, beside hvrun";
  return false;
}

// On the hosts where the plan needs it and may wait for it, and only there. First what lies beside
// the agent, then, to some hosts at a time, the program itself.
asio::awaitable<void> take_inventories(LaunchContext& context) {
  Job& job = context.job;
  if (job.spec.inventory_timeout <= Duration::zero()) co_return;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    if (has_failed(job.hosts[i])) continue;
    if (context.goes_on_without_hosts ||
        needs_inventory(job.spec, context.list, i, job.hosts[i].hello->facts))
      ask_for_inventory(&job.hosts[i], time_of_launch(job));
  }
  co_await await_inventories(context);
  if (job.all_hosts([](const HostState& host) { return !host.is_asked_for_inventory; })) co_return;
  std::size_t sent = 0;
  for (HostState& host : job.hosts) {
    if (has_failed(host) || !host.inventory || !host.inventory->is_missing) continue;
    if (!ask_with_own_program(&host, time_of_launch(job))) continue;
    if (++sent % kSentAtOnce == 0) co_await await_inventories(context);
  }
  co_await await_inventories(context);
  context.phase("drivers have told of GPUs");
}

namespace {

HostFacts facts_of(const HostState& host) {
  const wire::Facts& told = host.hello->facts;
  if (!host.inventory) return host_facts(told);
  const std::string& problem = problem_of(*host.inventory);
  HostFacts facts = host_facts(told, told_of_gpus(*host.inventory));
  if (!problem.empty() && !told.gpus.empty())
    facts.warnings.push_back("the driver could not be asked for its GPUs (" +
                             printable(problem, 1000) + "), so the plan goes by what /proc tells");
  return facts;
}

std::vector<std::optional<HostFacts>> facts_of(const Job& job, const HostList& list) {
  std::vector<std::optional<HostFacts>> facts(list.this_machine ? 1 : list.entries.size());
  for (std::size_t i = 0; i < job.hosts.size(); ++i)
    if (!has_failed(job.hosts[i])) facts[i] = facts_of(job.hosts[i]);
  return facts;
}

}  // namespace

// Makes the plan; hosts that got no rank are let go.
void plan_ranks(LaunchContext& context) {
  Job& job = context.job;
  job.plan = make_plan(job.spec, context.list, facts_of(job, context.list));
  for (const std::string& warning : job.plan.warnings) context.warn("warning: " + warning);
  if (job.spec.report_bindings)
    for (const std::string& line : split(trim(bindings_as_text(job.plan)), '\n'))
      context.warn(line);
  std::vector<HostState> with_ranks;
  for (const PlannedHost& host : job.plan.hosts) {
    HostState& state = job.hosts[host.entry];
    if (state.link) state.link->renumber(static_cast<int>(with_ranks.size()));
    with_ranks.push_back(std::move(state));
  }
  for (const HostState& host : job.hosts)
    if (host.link) host.link->close();
  job.hosts = std::move(with_ranks);
  for (PlannedRank& rank : job.plan.ranks) {
    rank.identity.job_id = job.id;
    job.hosts[static_cast<std::size_t>(rank.host)].ranks.push_back(rank.identity.rank);
  }
  job.ranks.resize(job.plan.ranks.size());
  job.policy.emplace(static_cast<int>(job.ranks.size()));
  job.fences.emplace(job.hosts.size());
}

asio::awaitable<void> set_up_hosts(LaunchContext& context) {
  Job& job = context.job;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    wire::Setup setup;
    setup.job_id = job.id;
    setup.key = job.key;
    setup.host_index = static_cast<std::uint32_t>(i);
    setup.lost_after_s = std::chrono::duration<double>(job.spec.lost_after).count();
    setup.grace_s = std::chrono::duration<double>(job.spec.grace).count();
    setup.stall_s = std::chrono::duration<double>(job.stall_limit).count();
    setup.stall_end_s = std::chrono::duration<double>(job.stall_end).count();
    setup.hold_port = i == 0;
    setup.master_port = job.spec.master_port;
    setup.release_port = !job.spec.hold_port;
    setup.port_range = job.port_range;
    setup.probe = job.hosts.size() > 1;
    setup.slurm_signals_ranks = job.slurm_signals_ranks;
    if (!has_failed(job.hosts[i])) job.hosts[i].link->send(setup);
  }
  co_await await_hosts(
      context, "prepare the job", [](const HostState& host) { return host.set_up.has_value(); },
      answer_deadline(job));
}

std::optional<Error> same_machines_of(const LaunchContext& context) {
  const Job& job = context.job;
  if (job.spec.oversubscribe) return std::nullopt;
  std::vector<HostOnMachine> hosts;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    if (has_failed(job.hosts[i])) continue;
    const wire::SetUp& set_up = *job.hosts[i].set_up;
    const bool is_named = !context.list.this_machine;
    const HostTarget& target = job.hosts[i].target;
    hosts.push_back({target.name,
                     is_named ? context.list.entries[job.plan.hosts[i].entry].origin : "",
                     set_up.shares_machine ? std::optional(set_up.first_here) : std::nullopt,
                     target.user, target.address, target.port});
  }
  return same_machines(std::move(hosts));
}

namespace {

// By which its ranks talk, and so MASTER_ADDR.
std::vector<std::string> addresses_of(const LaunchContext& context, std::size_t host) {
  return allowed_addresses(context.job.hosts[host].hello->facts, interfaces_of(context, host));
}

}  // namespace

std::string interfaces_of(const LaunchContext& context, std::size_t host) {
  const Job& job = context.job;
  if (context.list.this_machine || host >= job.plan.hosts.size()) return job.interfaces;
  const std::string& own = context.list.entries[job.plan.hosts[host].entry].interfaces;
  return own.empty() ? job.interfaces : own;
}

asio::awaitable<TriedAddresses> probe_addresses(LaunchContext& context) {
  Job& job = context.job;
  const int hosts = static_cast<int>(job.hosts.size());
  TriedAddresses tried;
  if (hosts == 1) {
    tried.choice.addresses = {"127.0.0.1"};
    co_return tried;
  }
  const auto has_failed_at = [&job](int host) {
    return has_failed(job.hosts[static_cast<std::size_t>(host)]);
  };
  std::vector<std::vector<std::string>>& candidates = tried.candidates;
  for (int host = 0; host < hosts; ++host)
    candidates.push_back(has_failed_at(host)
                             ? std::vector<std::string>{}
                             : addresses_of(context, static_cast<std::size_t>(host)));
  for (int from = 0; from < hosts; ++from) {
    if (has_failed_at(from)) continue;
    wire::ProbeRequest request;
    request.timeout_s = std::chrono::duration<double>(
                            context.goes_on_without_hosts ? kReachTimeoutOfCheck : kReachTimeout)
                            .count();
    for (const int to : probe_partners(from, hosts)) {
      if (has_failed_at(to)) continue;
      const HostState& target = job.hosts[static_cast<std::size_t>(to)];
      request.targets.push_back({static_cast<std::uint32_t>(to), target.set_up->probe_port,
                                 candidates[static_cast<std::size_t>(to)]});
    }
    job.hosts[static_cast<std::size_t>(from)].link->send(request);
  }
  co_await await_hosts(
      context, "try the hosts' addresses",
      [](const HostState& host) { return host.probe.has_value(); }, answer_deadline(job));
  std::vector<std::string> names;
  for (int host = 0; host < hosts; ++host) {
    const HostState& state = job.hosts[static_cast<std::size_t>(host)];
    names.push_back(state.target.name);
    if (has_failed_at(host)) continue;
    for (const wire::ProbeResult& result : state.probe->results)
      tried.outcomes.push_back({host, result});
  }
  tried.choice = choose_addresses(names, candidates, tried.outcomes);
  co_return tried;
}

namespace {

// The MPI operator names pods with their service's domain, its launcher's, too, where that has
// ranks.
bool is_own_pod(const HostEntry& entry, const HostList& list, const std::string& own_hostname) {
  return list.reach.may_come_late && entry.name.rfind(own_hostname + ".", 0) == 0;
}

}  // namespace

std::vector<HostTarget> targets_of(const JobSpec& spec, const HostList& list,
                                   const std::string& own_hostname) {
  std::vector<HostTarget> targets;
  if (list.this_machine) {
    targets.push_back({"localhost", "", 0, "", true});
    return targets;
  }
  const std::size_t count = hosts_needed(spec, list);
  for (std::size_t i = 0; i < count; ++i) {
    const HostEntry& entry = list.entries[i];
    HostTarget target;
    target.name = entry.name;
    target.user = entry.user.empty() ? spec.ssh_user : entry.user;
    target.port = entry.port != 0 ? entry.port : spec.ssh_port;
    target.identity_file =
        entry.identity.empty() ? spec.ssh_identity_file : from_home(entry.identity);
    target.address = entry.address;
    const bool is_here = entry.name == "localhost" || entry.name == own_hostname ||
                         is_own_pod(entry, list, own_hostname);
    target.is_local = is_here && target.user.empty() && spec.remote_shell.empty() &&
                      spec.spawner != SpawnerChoice::kSrun;
    targets.push_back(target);
  }
  return targets;
}

void begin_job(LaunchContext& context) {
  Job& job = context.job;
  char own_hostname[256] = "";
  ::gethostname(own_hostname, sizeof own_hostname - 1);
  std::vector<HostTarget> targets = targets_of(job.spec, context.list, own_hostname);
  if (context.check_way) context.check_way(targets);
  for (HostTarget& target : targets) job.hosts.emplace_back().target = std::move(target);
  job.id = random_hex(12);
  job.key = random_key();
}

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
