// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/launch_message.h"

#include <algorithm>
#include <utility>

#include "launcher/output/output_ledger.h"
#include "launcher/plan/mpi_wires.h"
#include "launcher/plan/slurm_variables.h"
#include "launcher/supervise/streams/window_size.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// The order of the devices decides which GPU a local rank's number means; -x overrides it.
constexpr char kDeviceOrder[] = "CUDA_DEVICE_ORDER";

// Rounded up.
std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// bytes: of the message with its first `encoded` ranks. Throws at the first rank that is too many,
// before the others are encoded.
[[noreturn]] void refuse_size(const Host& host, std::size_t ranks, std::size_t bytes,
                              std::size_t encoded) {
  throw Error(ErrorKind::kUsage,
              "start " + count_of(ranks, "rank") + " on host " + host.target.name +
                  ": who they are and their environment take about " +
                  mebibytes(bytes + bytes / encoded * (ranks - encoded)) +
                  ", and an agent takes at most " + mebibytes(wire::kMaxAgentPayload),
              "use fewer ranks (-np), more hosts, or a smaller environment (--clean-env)");
}

// A value of hvrun's environment or of -x overrides the placement's.
bool is_set_by_user(const CommonEnvironment& environment, const PlannedRank& rank,
                    const std::string& name) {
  const auto program = static_cast<std::size_t>(rank.program);
  return environment.variables.has(name) || (program < environment.program_variables.size() &&
                                             environment.program_variables[program].has(name));
}

// -x sets it for all ranks.
bool is_exported(const CommonEnvironment& environment, const std::string& name) {
  return environment.exported.count(name) > 0;
}

// The variables that every rank of the host gets.
RankEnvironment variables_of_host(const Host& host, const CommonEnvironment& environment) {
  RankEnvironment variables = environment.variables;
  if (!host.facts().gpus.empty() && !is_exported(environment, kDeviceOrder))
    variables.set(kDeviceOrder, "PCI_BUS_ID");
  return variables;
}

std::vector<int> hosts_of_ranks(const Job& job) {
  std::vector<int> hosts;
  for (const PlannedRank& rank : job.plan().ranks) hosts.push_back(rank.host);
  return hosts;
}

}  // namespace

wire::MpiWorld mpi_world(const Job& job, std::string space) {
  wire::MpiWorld world;
  world.space = std::move(space);
  for (const Host& host : job.members()) world.hosts.push_back(host.target.name);
  for (const PlannedRank& rank : job.plan().ranks) {
    world.host_of_rank.push_back(static_cast<std::uint32_t>(rank.host));
    world.program_of_rank.push_back(static_cast<std::uint32_t>(rank.program));
  }
  return world;
}

std::vector<wire::Program> programs_of(const JobSpec& spec, const CommonEnvironment& environment) {
  std::vector<wire::Program> programs;
  for (std::size_t i = 0; i < spec.programs.size(); ++i)
    programs.push_back({spec.programs[i].argv, spec.programs[i].working_directory,
                        environment.program_variables.at(i).entries(),
                        spec.programs[i].real_directory});
  return programs;
}

CommonEnvironment environment_of_epoch(const Job& job, CommonEnvironment environment) {
  std::vector<HostRanks> hosts;
  for (const Host& host : job.members())
    hosts.push_back({host.target.name, static_cast<int>(job.slots.ranks_on(host.id).size())});
  set_slurm_variables(hosts, &environment);
  return environment;
}

wire::Launch launch_message(const Job& job, const Host& host, const ContractAddresses& common,
                            const CommonEnvironment& environment, const wire::Pairs& defaults) {
  wire::Launch launch;
  launch.programs = programs_of(job.spec, environment);
  const bool is_slurm_job = environment.variables.has("SLURM_JOB_ID");
  launch.environment = variables_of_host(host, environment).entries();
  launch.host_variables = environment.host_variables;
  launch.umask = job.spec.environment.umask;
  launch.pty = job.spec.output.pty;
  launch.window = window_of_ranks(job);
  if (mpi_wires(job.spec.environment.wire_mpi, environment).pmi)
    launch.pmi = {static_cast<std::uint32_t>(job.slots.count()), pmi_mapping(hosts_of_ranks(job))};
  launch.credit_bytes = OutputLedger::first_credit(job.slots.count());
  ContractAddresses addresses = common;
  addresses.host_index = *job.slots.position_of(host.id);
  std::size_t bytes = encode(launch).size();
  const std::vector<int>& ranks = job.slots.ranks_on(host.id);
  for (const int rank : ranks) {
    wire::LaunchRank entry;
    entry.rank = static_cast<std::uint32_t>(rank);
    const PlannedRank& planned = job.plan().ranks[static_cast<std::size_t>(rank)];
    const Contract contract{planned.identity, host.answers.set_up->agent_socket,
                            job.identity.restarts};
    entry.environment = contract_environment(contract, addresses);
    if (job.spec.environment.horovod_names)
      for (auto& variable : horovod_environment(planned.identity))
        entry.environment.push_back(std::move(variable));
    if (is_slurm_job)
      for (auto& variable : slurm_variables_of_rank(planned.identity, addresses.host_index))
        if (!is_exported(environment, variable.first))
          entry.environment.push_back(std::move(variable));
    wire::Pairs variables = defaults;
    variables.insert(variables.end(), planned.variables.begin(), planned.variables.end());
    for (const auto& variable : variables)
      if (!is_set_by_user(environment, planned, variable.first))
        entry.environment.push_back(variable);
    entry.cores.assign(planned.cores.begin(), planned.cores.end());
    entry.stdin_mode =
        rank == job.spec.output.stdin_rank ? wire::StdinMode::kForwarded : wire::StdinMode::kNull;
    entry.program = static_cast<std::uint32_t>(planned.program);
    entry.has_result_pipe = rank == 0 && job.spec.output.result_fd;
    bytes += encode(entry).size();
    launch.ranks.push_back(std::move(entry));
    if (bytes > wire::kMaxAgentPayload) refuse_size(host, ranks.size(), bytes, launch.ranks.size());
  }
  return launch;
}

}  // namespace hv::launcher
