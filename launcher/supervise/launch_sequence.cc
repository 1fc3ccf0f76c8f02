// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/launch_sequence.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "launcher/allocation/host_identity.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/mpi_wires.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/launch_message.h"
#include "launcher/supervise/pod_query.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/clock.h"
#include "src/base/error.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

// Starts a PMIx server on every host. An agent without hvrun-pmix in its directory is sent the
// program, some agents at a time.
asio::awaitable<void> wire_mpi(LaunchContext& context) {
  Job& job = context.job;
  if (!mpi_wires(job.spec.environment.wire_mpi, context.ranks).pmix) co_return;
  wire::WiringRequest request;
  request.world = mpi_world(job, "hvrun-" + random_hex(16));
  request.timeout_s = std::chrono::duration<double>(job.spec.access.start_timeout).count();
  request.library_path = context.ranks.variables.as_environment().get_or("LD_LIBRARY_PATH", "");
  const std::function<bool(const Host&)> answered = [](const Host& host) {
    return host.answers.wiring.reply() != nullptr;
  };
  const auto ask = [&request, &job](Host& host) {
    request.host = static_cast<std::uint32_t>(*job.slots.position_of(host.id));
    host.answers.wiring.ask();
    host.send(request);
  };
  for (Host& host : job.members()) ask(host);
  co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  std::size_t sent = 0;
  for (Host& host : job.members()) {
    if (!host.answers.wiring.reply()->is_missing) continue;
    const auto program = helper_program("hvrun-pmix", host.facts().machine);
    if (!program) {
      host.phase.fail(Error(ErrorKind::kStart,
                            "find hvrun-pmix, by which MPI programs find each other, on host " +
                                host.target.name +
                                ": it is neither there nor, for its kind of machine, beside hvrun",
                            "install it with hvrun; for MPICH, which needs none, --wire-mpi=pmi"));
      continue;
    }
    request.program = *program;
    ask(host);
    if (++sent % kSentAtOnce == 0)
      co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  }
  co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  context.phase("MPI is wired");
}

wire::Pairs interfaces_chosen_for(const Job& job, const Host& host, const AddressChoice& choice) {
  if (job.members().size() < 2) return {};
  const auto position = static_cast<std::size_t>(*job.slots.position_of(host.id));
  return interface_variables(host.facts(), choice.addresses.at(position),
                             choice.common.at(position));
}

// Whether a host resolves the name to an address by which the first host was reached.
bool leads_to_first(const Host& host, const std::string& name, const AddressChoice& choice) {
  const wire::CheckReply* const reply = host.answers.checks.reply();
  if (!reply) return false;
  const std::vector<std::string>& reached = choice.common.front();
  return std::any_of(reply->names.begin(), reply->names.end(), [&](const wire::NameFacts& facts) {
    return facts.name == name &&
           std::any_of(facts.addresses.begin(), facts.addresses.end(),
                       [&](const std::string& address) {
                         return std::find(reached.begin(), reached.end(), address) != reached.end();
                       });
  });
}

// MASTER_ADDR. Programs put it before ":PORT", where an IPv6 address is misread, so the first
// host's name takes its place if all hosts resolve the name to that host.
asio::awaitable<std::string> master_address(LaunchContext& context, const AddressChoice& choice) {
  Job& job = context.job;
  const std::string address = choice.addresses.front();
  const std::string name = job.members().front().target.name;
  if (address.find(':') == std::string::npos || is_address(name)) co_return address;
  wire::CheckRequest request;
  request.timeout_s = Seconds(kReachTimeout).count();
  request.probes = {"names"};
  request.names = {name};
  for (Host& host : job.members()) {
    host.answers.checks.ask();
    host.send(request);
  }
  co_await await_hosts(
      context, "resolve the first host's name",
      [](const Host& host) { return host.answers.checks.reply() != nullptr; },
      answer_deadline(job) + kReachTimeout);
  const bool is_known =
      job.all_hosts([&](const Host& host) { return leads_to_first(host, name, choice); });
  for (Host& host : job.members()) host.answers.checks.withdraw();
  co_return is_known ? name : address;
}

asio::awaitable<void> launch_ranks(LaunchContext& context, const AddressChoice& choice) {
  Job& job = context.job;
  ContractAddresses addresses;
  addresses.master_address = co_await master_address(context, choice);
  addresses.master_port = static_cast<int>(job.members().front().answers.set_up->master_port);
  const CommonEnvironment environment = environment_of_epoch(job, context.ranks);
  for (const Host& host : job.members())
    host.send(launch_message(job, host, addresses, environment,
                             interfaces_chosen_for(job, host, choice)));
  co_await await_hosts(
      context, "check program and directory",
      [](const Host& host) { return host.phase.is<HostReady>(); }, answer_deadline(job));
  for (Slot& slot : job.slots) slot.open_streams = job.spec.output.pty ? 1 : 2;
  if (job.spec.output.result_fd) ++job.slots.of_rank(0).open_streams;
  job.stage.begin_ranks();
  job.send_to_all(wire::Go{});
  // Starting many ranks takes its time; heartbeats show that a host still works. A rank that has
  // failed meanwhile is the cause, whether or not the others have been started.
  const std::function<bool(const Host&)> started = [&job](const Host& host) {
    return host.phase.is<HostRunning>() || job.policy->failed();
  };
  co_await await_hosts(context, "start the ranks", started, TimePoint::max());
}

}  // namespace

asio::awaitable<void> launch_job(LaunchContext& context) {
  begin_job(context);
  context.slurm.begin(context);
  co_await connect_hosts(context);
  context.phase("agents answer");
  co_await take_inventories(context);
  plan_ranks(context);
  begin_pod_query(context);
  co_await context.slurm.wait(context);
  co_await set_up_hosts(context);
  if (const auto error = same_machines_of(context)) throw Error(*error);
  context.phase("hosts are set up");
  const TriedAddresses tried = co_await probe_addresses(context);
  for (const std::string& warning : tried.choice.warnings) context.warn("warning: " + warning);
  context.phase("addresses are chosen");
  co_await wire_mpi(context);
  co_await launch_ranks(context, tried.choice);
  context.phase("ranks run");
}

}  // namespace hv::launcher
