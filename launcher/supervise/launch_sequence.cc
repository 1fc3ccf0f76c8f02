// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/launch_sequence.h"

#include <chrono>
#include <functional>
#include <string>

#include "launcher/plan/mpi_wires.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/launch_message.h"
#include "launcher/supervise/slurm_query.h"
#include "src/base/clock.h"
#include "src/base/error.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

// PMIx servers on every host: first by what lies beside the agent, then, on some hosts at a time,
// by the program itself.
asio::awaitable<void> wire_mpi(LaunchContext& context, const CommonEnvironment& environment) {
  Job& job = context.job;
  if (!mpi_wires(job.spec.wire_mpi, environment).pmix) co_return;
  wire::WiringRequest request;
  request.world = mpi_world(job, "hvrun-" + random_hex(16));
  request.timeout_s = std::chrono::duration<double>(job.spec.start_timeout).count();
  request.library_path =
      Environment::from_entries(environment.entries).get_or("LD_LIBRARY_PATH", "");
  const std::function<bool(const HostState&)> answered = [](const HostState& host) {
    return host.wiring.has_value();
  };
  job.send_to_all(request);
  co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  std::size_t sent = 0;
  for (HostState& host : job.hosts) {
    if (!host.wiring->is_missing) continue;  // its first answer: one not asked again keeps that
    const auto program = helper_program("hvrun-pmix", host.hello->facts.machine);
    if (!program)
      throw Error(ErrorKind::kStart,
                  "host " + host.target.name +
                      ": hvrun-pmix, by which MPI programs find each other, is neither there nor, "
                      "for its kind of machine, beside hvrun",
                  "install it with hvrun; for MPICH, which needs none, --wire-mpi=pmi");
    request.program = *program;
    host.wiring.reset();
    host.link->send(request);
    if (++sent % kSentAtOnce == 0)
      co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  }
  co_await await_hosts(context, "start PMIx servers", answered, answer_deadline(job));
  context.phase("MPI is wired");
}

asio::awaitable<void> launch_ranks(LaunchContext& context, const AddressChoice& choice,
                                   const CommonEnvironment& environment) {
  Job& job = context.job;
  ContractAddresses addresses;
  addresses.master_address = choice.addresses.front();
  addresses.master_port = static_cast<int>(job.hosts[0].set_up->master_port);
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    job.hosts[i].link->send(launch_message(job, i, addresses, environment));
  }
  co_await await_hosts(
      context, "check program and directory", [](const HostState& host) { return host.ready; },
      answer_deadline(job));
  for (RankState& rank : job.ranks) rank.open_streams = job.spec.pty ? 1 : 2;
  job.ranks_may_run = true;
  job.ranks_begun = now();
  job.send_to_all(wire::Go{});
  // Many ranks take their time; that a host still lives, its heartbeat tells. A rank that has
  // failed meanwhile is the cause, whether or not the others have been started.
  const std::function<bool(const HostState&)> started = [&job](const HostState& host) {
    return host.started || job.policy->failed();
  };
  co_await await_hosts(context, "start the ranks", started, TimePoint::max());
}

}  // namespace

asio::awaitable<void> launch_job(LaunchContext& context) {
  begin_job(context);
  begin_slurm_query(context);
  co_await connect_hosts(context);
  context.phase("agents answer");
  co_await take_inventories(context);
  plan_ranks(context);
  co_await await_slurm_query(context.job);
  co_await set_up_hosts(context);
  if (const auto error = same_machines_of(context)) throw Error(*error);
  context.phase("hosts are set up");
  const TriedAddresses tried = co_await probe_addresses(context);
  for (const std::string& warning : tried.choice.warnings) context.warn("warning: " + warning);
  context.phase("addresses are chosen");
  const CommonEnvironment environment = common_environment(context.job.spec, context.environment);
  co_await wire_mpi(context, environment);
  co_await launch_ranks(context, tried.choice, environment);
  context.phase("ranks run");
}

}  // namespace hv::launcher
