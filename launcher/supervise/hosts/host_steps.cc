// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_steps.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <map>
#include <utility>

#include "hvrun_version.h"
#include "launcher/allocation/host_failures.h"
#include "launcher/allocation/host_names.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/gpu_inventory.h"
#include "launcher/plan/rank_resources.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/hosts/same_machines.h"
#include "launcher/supervise/launch_message.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/running_time.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

void throw_if_stopped(const Job& job) {
  if (job.stop()) throw Interrupted{};
}

// A connection that comes too late is closed, which ends its agent.
asio::awaitable<void> connect_host(LaunchContext& context, Host& host) {
  Job& job = context.job;
  const auto is_late = [&] { return !host.phase.is<HostConnecting>() || job.stage.is_ending(); };
  try {
    auto channel = co_await context.spawner.start(host.target);
    if (is_late()) co_return;
    host.link = std::make_shared<HostLink>(job.executor, LinkId{host.id, 0}, std::move(channel),
                                           job.spec.ending.lost_after, context.observer);
    host.link->start();
  } catch (const Error& error) {
    if (!is_late()) host.phase.fail(error);
  }
  job.change.notify();
}

}  // namespace

bool has_failed(const Host& host) { return host.phase.failure() || host.phase.is_lost(); }

std::optional<Error> failure_of(const Host& host, const std::string& doing, Spawner& spawner) {
  if (const Error* const failure = host.phase.failure()) return *failure;
  if (const HostLost* const lost = host.phase.lost())
    return Error(ErrorKind::kHostLost, doing + ": " + lost->reason,
                 spawner.advice_if_lost(host.target));
  return std::nullopt;
}

namespace {

// Throws the failures of all hosts, equal ones once: the first as the Error, after the others have
// been announced.
[[noreturn]] void throw_failures(LaunchContext& context, const std::string& doing) {
  std::vector<HostFailure> failures;
  for (const Host& host : context.job.members())
    if (const auto failure = failure_of(host, doing, context.spawner))
      failures.push_back({host.target.name, *failure});
  const std::vector<FoldedFailure> folded = fold_failures(failures);
  for (std::size_t i = 1; i < folded.size(); ++i) {
    const Error error = folded[i].error();
    context.printed_errors += std::string(error.what()) + "\n";
    context.warn(std::string("error: ") + error.what() +
                 (error.hint().empty() ? "" : "\n  try: " + error.hint()));
  }
  throw folded.at(0).error();
}

// In a check a host that does not answer has failed, and the others continue. The error of a lost
// host names the step in which it was lost.
void leave_out(LaunchContext& context, const std::string& doing,
               const std::function<bool(const Host&)>& done) {
  for (Host& host : context.job.members()) {
    if (host.phase.is_lost()) host.phase.explain_loss(*failure_of(host, doing, context.spawner));
    if (done(host) || has_failed(host)) continue;
    host.phase.fail(Error(ErrorKind::kTimeout, doing + ": no answer within --start-timeout",
                          "raise --start-timeout, or look what keeps that host busy"));
    if (host.link) host.link->close();  // its clock's reading stays
  }
}

// As Job::until, with a deadline that a stop of hvrun (Ctrl-Z, SIGSTOP) defers: no host can be
// blamed for it.
asio::awaitable<void> until_answered(Job& job, const std::function<bool()>& done,
                                     TimePoint deadline) {
  RunningTime running_time;
  while (running_time.at(now()) < deadline) {
    if (co_await job.until(done, running_time.next_check(deadline)) || job.stop()) co_return;
  }
}

}  // namespace

asio::awaitable<void> await_hosts(LaunchContext& context, const std::string& doing,
                                  std::function<bool(const Host&)> done, TimePoint deadline) {
  Job& job = context.job;
  const auto any_failed = [&job] { return !job.all_hosts(std::not_fn(has_failed)); };
  const auto all_answered = [&job, &done] {
    return job.all_hosts([&done](const Host& host) { return done(host) || has_failed(host); });
  };
  const bool goes_on = context.goes_on_without_hosts;
  const std::function<bool()> is_decided = [&] {
    return all_answered() || (any_failed() && !goes_on);
  };
  co_await until_answered(job, is_decided, deadline);
  throw_if_stopped(job);
  if (goes_on) {
    leave_out(context, doing, done);
    co_return;
  }
  if (any_failed() && !all_answered()) {
    co_await job.until(all_answered, std::min(deadline, now() + kOtherFailures));
    throw_if_stopped(job);
  }
  std::vector<std::string> unanswered;
  for (const Host& host : job.members())
    if (!done(host) && !has_failed(host)) unanswered.push_back(host.target.name);
  if (any_failed()) {
    if (!unanswered.empty()) context.warn("no answer yet from " + hosts_text(unanswered));
    throw_failures(context, doing);
  }
  if (unanswered.empty()) co_return;
  throw Error(ErrorKind::kTimeout,
              doing + ": no answer from " + hosts_text(unanswered) + " within --start-timeout",
              "raise --start-timeout, or look what keeps those hosts busy");
}

TimePoint answer_deadline(const Job& job) {
  return now() + job.spec.access.start_timeout + kAnswerMargin;
}

namespace {

// With --verbose: how each host was reached.
void report_routes(const LaunchContext& context) {
  std::map<std::string, std::vector<std::string>> hosts_by_route;
  for (const Host& host : context.job.members())
    if (!has_failed(host))
      hosts_by_route[context.spawner.route(host.target)].push_back(host.target.name);
  for (const auto& [route, names] : hosts_by_route)
    context.phase(named_hosts_text(names) + ": " + route);
}

}  // namespace

asio::awaitable<void> connect_hosts(LaunchContext& context) {
  Job& job = context.job;
  for (Host& host : job.members())
    asio::co_spawn(job.executor, connect_host(context, host), asio::detached);
  co_await await_hosts(
      context, "start the agent",
      [](const Host& host) { return host.answers.greeting.has_value(); }, answer_deadline(job));
  bool is_one_build = true;
  for (Host& host : job.members()) {
    if (has_failed(host)) continue;
    const wire::Hello& hello = host.answers.greeting->hello;
    if (is_same_build(hello)) continue;
    host.phase.fail(Error(ErrorKind::kStart,
                          "host " + host.target.name + " runs an agent of another build (" +
                              printable(hello.build) + ", this hvrun is of " HVRUN_BUILD_ID ")",
                          "install hvrun and hvrun-agent together"));
    is_one_build = false;
  }
  if (!is_one_build && !context.goes_on_without_hosts) throw_failures(context, "start the agent");
  report_routes(context);
}

namespace {

InventoryTime time_of_launch(const Job& job) {
  return {job.spec.access.inventory_timeout, " (HVRUN_INVENTORY_TIMEOUT)"};
}

void send_inventory_request(Host* host, const InventoryTime& time, const std::string& program) {
  host->answers.inventory.ask();
  wire::InventoryRequest request;
  request.timeout_s = std::chrono::duration<double>(time.timeout).count();
  request.whose_time = time.name;
  request.program = program;
  host->send(request);
}

asio::awaitable<void> await_inventories(LaunchContext& context) {
  co_await await_hosts(
      context, "ask the drivers of GPUs",
      [](const Host& host) { return !host.answers.inventory.is_open(); },
      answer_deadline(context.job) + context.job.spec.access.inventory_timeout);
}

}  // namespace

void ask_for_inventory(Host* host, const InventoryTime& time) {
  send_inventory_request(host, time, "");
}

bool ask_with_own_program(Host* host, const InventoryTime& time) {
  const auto program = helper_program("hvrun-inventory", host->facts().machine);
  if (program) {
    send_inventory_request(host, time, *program);
    return true;
  }
  host->answers.inventory.reply()->problem =
      "hvrun-inventory is neither there nor, for its kind of machine, beside hvrun";
  return false;
}

// An agent without hvrun-inventory in its directory is sent the program, some agents at a time.
asio::awaitable<void> take_inventories(LaunchContext& context) {
  Job& job = context.job;
  if (job.spec.access.inventory_timeout <= Duration::zero()) co_return;
  for (Host& host : job.members()) {
    if (has_failed(host)) continue;
    if (context.goes_on_without_hosts ||
        needs_inventory(job.spec, context.list, static_cast<std::size_t>(host.id), host.facts()))
      ask_for_inventory(&host, time_of_launch(job));
  }
  co_await await_inventories(context);
  if (job.all_hosts([](const Host& host) { return !host.answers.inventory.is_asked(); })) co_return;
  std::size_t sent = 0;
  for (Host& host : job.members()) {
    const wire::InventoryReply* const inventory = host.answers.inventory.reply();
    if (has_failed(host) || !inventory || !inventory->is_missing) continue;
    if (!ask_with_own_program(&host, time_of_launch(job))) continue;
    if (++sent % kSentAtOnce == 0) co_await await_inventories(context);
  }
  co_await await_inventories(context);
  context.phase("drivers have told of GPUs");
}

namespace {

HostFacts facts_of(const Host& host) {
  const wire::Facts& reported = host.facts();
  const wire::InventoryReply* const inventory = host.answers.inventory.reply();
  if (!inventory) return host_facts(reported);
  const std::string& problem = problem_of(*inventory);
  HostFacts facts = host_facts(reported, inventory_of_gpus(*inventory));
  if (!problem.empty() && !reported.gpus.empty())
    facts.warnings.push_back("the driver could not be asked for its GPUs (" +
                             printable(problem, 1000) + "), so the plan goes by what /proc tells");
  return facts;
}

std::vector<std::optional<HostFacts>> facts_of(const Job& job, const HostList& list) {
  std::vector<std::optional<HostFacts>> facts(list.this_machine ? 1 : list.entries.size());
  for (const Host& host : job.members())
    if (!has_failed(host)) facts.at(static_cast<std::size_t>(host.id)) = facts_of(host);
  return facts;
}

}  // namespace

void plan_ranks(LaunchContext& context) {
  Job& job = context.job;
  LaunchPlan plan = make_plan(job.spec, context.list, facts_of(job, context.list));
  for (const std::string& warning : plan.warnings) context.warn("warning: " + warning);
  if (job.spec.report.report_bindings)
    for (const std::string& line : split(trim(bindings_as_text(plan)), '\n')) context.warn(line);
  job.begin_epoch(std::move(plan));
  std::vector<std::pair<std::string, const wire::Facts*>> hosts;
  for (const Host& host : job.members())
    if (!has_failed(host)) hosts.emplace_back(host.target.name, &host.facts());
  for (const std::string& warning : warnings_on_interfaces(context.ranks.variables, hosts))
    context.warn("warning: " + warning);
}

asio::awaitable<void> set_up_hosts(LaunchContext& context) {
  Job& job = context.job;
  for (Host& host : job.members()) {
    wire::SetupRequest setup;
    setup.job_id = job.identity.id;
    setup.key = job.identity.key;
    setup.host_id = static_cast<std::uint32_t>(host.id);
    setup.lost_after_s = std::chrono::duration<double>(job.spec.ending.lost_after).count();
    setup.grace_s = Seconds(job.grace(EndedBy::kJob)).count();
    setup.grace_after_signal_s = Seconds(job.grace(EndedBy::kScheduler)).count();
    setup.stalls.warning_s = std::chrono::duration<double>(job.knobs.stall_limit).count();
    setup.stalls.end_s = std::chrono::duration<double>(job.knobs.stall_end).count();
    setup.stalls.call_end_s = std::chrono::duration<double>(job.knobs.call_end).count();
    setup.hold_port = host.id == job.slots.epoch().hosts.front();
    setup.master_port = job.spec.environment.master_port;
    setup.release_port = !job.spec.environment.hold_port;
    setup.port_range = job.knobs.port_range;
    setup.probe = job.slots.epoch().hosts.size() > 1;
    setup.slurm_signals_ranks = context.slurm.signals_ranks();
    if (!has_failed(host)) host.send(setup);
  }
  co_await await_hosts(
      context, "prepare the job", [](const Host& host) { return host.answers.set_up.has_value(); },
      answer_deadline(job));
}

namespace {

// The place in the user's input that names the host; empty for this machine.
std::string origin_of(const LaunchContext& context, const Host& host) {
  return context.list.this_machine ? ""
                                   : context.list.entries[static_cast<std::size_t>(host.id)].origin;
}

}  // namespace

std::optional<Error> same_machines_of(const LaunchContext& context) {
  const Job& job = context.job;
  if (job.spec.placement.oversubscribe) return std::nullopt;
  std::vector<HostOnMachine> hosts;
  std::map<std::uint32_t, std::uint32_t> index_of;  // in hosts, by HostId
  for (const Host& host : job.members()) {
    if (has_failed(host)) continue;
    const wire::SetupReply& set_up = *host.answers.set_up;
    const HostTarget& target = host.target;
    index_of[static_cast<std::uint32_t>(host.id)] = static_cast<std::uint32_t>(hosts.size());
    hosts.push_back({target.name, origin_of(context, host),
                     set_up.shares_machine ? std::optional(set_up.first_here) : std::nullopt,
                     target.user, target.address, target.port});
  }
  for (HostOnMachine& host : hosts) {
    if (!host.first_here) continue;
    const auto first = index_of.find(*host.first_here);
    host.first_here = first == index_of.end() ? UINT32_MAX : first->second;
  }
  return same_machines(std::move(hosts));
}

namespace {

// The addresses that the host's ranks may use.
std::vector<std::string> addresses_of(const LaunchContext& context, const Host& host) {
  if (has_failed(host)) return {};
  return allowed_addresses(host.facts(), interfaces_of(context, host));
}

}  // namespace

std::string interfaces_of(const LaunchContext& context, const Host& host) {
  const Job& job = context.job;
  if (context.list.this_machine || !job.slots.position_of(host.id)) return job.knobs.interfaces;
  const std::string& own = context.list.entries[static_cast<std::size_t>(host.id)].interfaces;
  return own.empty() ? job.knobs.interfaces : own;
}

asio::awaitable<TriedAddresses> probe_addresses(LaunchContext& context) {
  Job& job = context.job;
  const auto members = job.members();
  const int hosts = static_cast<int>(members.size());
  TriedAddresses tried;
  if (hosts == 1) {
    tried.choice.addresses = {"127.0.0.1"};
    co_return tried;
  }
  std::vector<std::string> names;
  for (const Host& host : members) {
    names.push_back(host.target.name);
    tried.candidates.push_back(addresses_of(context, host));
  }
  for (int from = 0; from < hosts; ++from) {
    Host& prober = members[from];
    if (has_failed(prober)) continue;
    wire::ProbeRequest request;
    request.timeout_s = std::chrono::duration<double>(
                            context.goes_on_without_hosts ? kReachTimeoutOfCheck : kReachTimeout)
                            .count();
    for (const int to : probe_partners(from, hosts)) {
      const Host& target = members[to];
      if (has_failed(target)) continue;
      request.targets.push_back({static_cast<std::uint32_t>(target.id),
                                 target.answers.set_up->probe_port,
                                 tried.candidates[static_cast<std::size_t>(to)]});
    }
    prober.answers.reachability.ask();
    prober.send(request);
  }
  co_await await_hosts(
      context, "try the hosts' addresses",
      [](const Host& host) { return host.answers.reachability.reply() != nullptr; },
      answer_deadline(job));
  for (int from = 0; from < hosts; ++from) {
    const Host& prober = members[from];
    if (has_failed(prober)) continue;
    for (const wire::ProbeResult& result : prober.answers.reachability.reply()->results)
      if (const auto to = job.slots.position_of(HostId{result.host_id}))
        tried.outcomes.push_back({from, *to, result.reached, result.reason});
  }
  tried.choice = choose_addresses(names, tried.candidates, tried.outcomes);
  co_return tried;
}

namespace {

// The MPI operator adds the service's domain to the names of pods, also of a launcher with ranks.
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
    target.user = entry.user.empty() ? spec.access.ssh_user : entry.user;
    target.port = entry.port != 0 ? entry.port : spec.access.ssh_port;
    target.identity_file =
        entry.identity.empty() ? spec.access.ssh_identity_file : from_home(entry.identity);
    target.address = entry.address;
    const bool is_here = entry.name == "localhost" || entry.name == own_hostname ||
                         is_own_pod(entry, list, own_hostname);
    // A port or key for all hosts is for the others: Horovod's users give one to the machine with
    // horovodrun, where no sshd runs.
    target.is_local = is_here && target.user.empty() && entry.port == 0 && entry.identity.empty() &&
                      spec.access.remote_shell.empty() &&
                      spec.access.spawner != SpawnerChoice::kSrun;
    targets.push_back(target);
  }
  return targets;
}

void begin_job(LaunchContext& context) {
  Job& job = context.job;
  std::vector<HostTarget> targets = targets_of(job.spec, context.list, own_hostname());
  if (context.check_way) context.check_way(targets);
  for (HostTarget& target : targets) job.add_host(std::move(target));
  job.identity.id = random_hex(12);
  job.identity.key = random_key();
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

CheckedHost checked(const LaunchContext& context, const Host& host) {
  const Job& job = context.job;
  const HostAnswers& answers = host.answers;
  CheckedHost result;
  result.name = host.target.name;
  result.origin = origin_of(context, host);
  result.has_named_gpus =
      !context.list.this_machine && has_named_gpus(context.list, static_cast<std::size_t>(host.id));
  result.failure = failure_of(host, "check the host", context.spawner);
  result.ranks = job.slots.ranks_on(host.id);
  if (!answers.greeting) return result;
  result.seconds_to_agent =
      std::chrono::duration<double>(answers.greeting->arrived_at - job.identity.begun).count();
  result.facts = host.facts();
  if (const std::string requested = interfaces_of(context, host);
      allows_no_address(*result.facts, requested))
    result.unmet_interfaces = requested;
  result.is_asked_for_inventory = answers.inventory.is_asked();
  if (const auto* const inventory = answers.inventory.reply()) result.inventory = *inventory;
  if (const auto* const checks = answers.checks.reply()) result.told = *checks;
  if (!host.link) return result;
  const AgentClock& clock = host.link->clock();
  result.clock_ahead_s = static_cast<double>(clock.ahead()) / kNanosecondsInSecond;
  // Without an exchange: Hello was on its way no longer than the host took to answer.
  result.clock_error_s = clock.round_trip()
                             ? static_cast<double>(*clock.round_trip()) / 2 / kNanosecondsInSecond
                             : result.seconds_to_agent;
  return result;
}

}  // namespace

bool is_reached(const Host& host) { return host.answers.greeting && !has_failed(host); }

bool is_same_build(const wire::Hello& hello) {
  return hello.protocol == wire::kAgentProtocol && hello.build == HVRUN_BUILD_ID;
}

wire::CheckRequest check_request(const LaunchContext& context, Duration time,
                                 std::vector<std::string> probes) {
  const Job& job = context.job;
  wire::CheckRequest request;
  request.timeout_s = std::chrono::duration<double>(time).count();
  request.probes = std::move(probes);
  request.programs = programs_of(job.spec, context.ranks);
  request.environment = context.ranks.variables.entries();
  request.host_variables = context.ranks.host_variables;
  request.port_range = job.knobs.port_range;
  return request;
}

std::vector<CheckedHost> checked_hosts(const LaunchContext& context) {
  std::vector<CheckedHost> hosts;
  for (const Host& host : context.job.members()) hosts.push_back(checked(context, host));
  return hosts;
}

}  // namespace hv::launcher
