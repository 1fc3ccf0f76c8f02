// What of a job's wishes goes to mpirun, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "launcher/mpi/mpi_command.h"
#include "launcher/plan/rank_environment.h"
#include "src/base/error.h"
#include "src/base/knob.h"
#include "src/base/name_pattern.h"
#include "src/base/text.h"
#include "src/contract/contract.h"
#include "src/contract/runtime_knobs.h"
#include "src/net/port_range.h"

namespace hv::launcher {
namespace {

// PMIx's own parameters are no step's, though their names begin like a step's.
constexpr const char* kPmixParameters = "PMIX_MCA_*";

// Of the MPIs and what they are made of: mpirun itself reads them, and hands on what ranks need.
const std::vector<std::string>& mpirun_variable_patterns() {
  static const std::vector<std::string> patterns{"PATH",   "LD_LIBRARY_PATH", "OMPI_*", "PRTE_*",
                                                 "OPAL_*", kPmixParameters,   "HYDRA_*"};
  return patterns;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

bool is_of_step(const std::string& name) {
  return matches_any(name, step_variable_patterns()) && !matches_pattern(name, kPmixParameters);
}

// Others, as those of a shell's functions, cannot stand on mpirun's command line.
bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](const char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

struct Wish {
  bool is_there;
  const char* option;
  const char* why;
  const char* instead;
};

std::vector<Wish> wishes_of_agents(const JobSpec& spec, bool has_facts) {
  const char* leave_out = "leave it out, or start the job without --mpi";
  return {
      {spec.spawner != SpawnerChoice::kByItself, "--spawner", "mpirun starts its own way",
       "leave it out; --rsh and --mpi-args say how mpirun reaches hosts"},
      {spec.pty, "--pty", "mpirun has the ranks' streams", leave_out},
      {!spec.summary_file.empty(), "--summary", "mpirun does not say how each rank has ended",
       leave_out},
      {!spec.hold_port, "--no-hold-port", "nobody holds a port anyway", leave_out},
      {spec.bind_to == BindTo::kGpu, "--bind-to gpu", "mpirun binds to cores and NUMA nodes only",
       leave_out},
      {spec.sees_only_its_gpus, "--gpu-bind=visible and --gpus-per-rank above 1",
       "all ranks get the same variables from mpirun",
       "let ranks choose their GPU by their local rank"},
      {spec.gpus_are_asked_for && !has_facts, "--gpus-per-rank", "no host is asked for its GPUs",
       "say how many ranks each host is to have, as in -H a:4,b:4"},
      {spec.wire_mpi != WireMpi::kByItself, "--wire-mpi", "mpirun wires its ranks itself",
       leave_out},
      {spec.nic_bind, "--nic-bind", "all ranks get the same variables from mpirun", leave_out},
  };
}

bool is_pods_shell(const JobSpec& spec) {
  const auto words = shell_words(spec.remote_shell);
  return words && !words->empty() && is_kubectl(words->front());
}

void refuse_hosts(const JobSpec& spec, const HostList& list) {
  if (!list.reach.kubectl.program.empty() || is_pods_shell(spec))
    throw Error(ErrorKind::kUsage, "--mpi: these hosts are pods, which kubectl reaches",
                "leave out --mpi, or start mpirun itself as the operator's documents say");
  for (const HostEntry& host : list.entries) {
    if (!host.gpus.empty() || !host.without_gpus.empty() || !host.interfaces.empty())
      throw Error(ErrorKind::kUsage,
                  "--mpi: mpirun cannot be told which GPUs or interfaces of host " +
                      printable(host.name) + " are meant",
                  "leave that out of " + host.origin + ", or start the job without --mpi");
  }
  for (const RankPlace& place : list.rank_places)
    if (!place.cores.empty() || !place.sockets.empty() || !place.gpus.empty())
      throw Error(ErrorKind::kUsage,
                  "--mpi takes the hosts of a rankfile, and " + printable(list.rankfile) +
                      " names cores or GPUs",
                  "--mpi-args '--rankfile FILE' hands the file itself to Open MPI's mpirun");
}

// hvrun says these itself, and its plan, labels and checks would be of another job.
void refuse_arguments(const JobSpec& spec) {
  const std::pair<const char*, const char*> own[] = {{"-np", "-np"},
                                                     {"--np", "-np"},
                                                     {"-n", "-np"},
                                                     {"--n", "-np"},
                                                     {"-c", "-np"},
                                                     {"-host", "-H"},
                                                     {"--host", "-H"},
                                                     {"-H", "-H"},
                                                     {"-hosts", "-H"},
                                                     {"-f", "--hostfile"},
                                                     {"-hostfile", "--hostfile"},
                                                     {"--hostfile", "--hostfile"},
                                                     {"-machinefile", "--hostfile"},
                                                     {"--machinefile", "--hostfile"}};
  for (const std::string& word : spec.mpi_args)
    for (const auto& [name, instead] : own)
      if (word.substr(0, word.find('=')) == name)
        throw Error(ErrorKind::kUsage,
                    "--mpi-args says " + word + ", which hvrun tells mpirun itself",
                    std::string(instead) + " as an option of hvrun's own");
}

}  // namespace

void refuse_what_mpirun_lacks(const JobSpec& spec, const HostList& list) {
  for (const Wish& wish : wishes_of_agents(spec, list.this_machine))
    if (wish.is_there)
      throw Error(ErrorKind::kUsage,
                  std::string(wish.option) + " is nothing that --mpi can do: " + wish.why,
                  wish.instead);
  refuse_arguments(spec);
  for (const ProgramSpec& program : spec.programs)
    if (!program.exports.empty())
      throw Error(ErrorKind::kUsage, "--mpi: -x of one of several programs cannot be had",
                  "give -x before the first program, for all of them");
  refuse_hosts(spec, list);
}

std::vector<std::string> vain_wishes(const JobSpec& spec, const LaunchPlan& plan) {
  std::vector<std::string> lines;
  if (spec.start_timeout != JobSpec().start_timeout)
    lines.push_back("--start-timeout sets nothing with --mpi: mpirun has limits of its own");
  std::vector<std::string> guessed;
  for (const PlannedHost& host : plan.hosts)
    if (host.slots_assumed) guessed.push_back(host.name);
  if (!guessed.empty())
    lines.push_back("with --mpi no host is asked for its GPUs: one slot is assumed on " +
                    join_some(guessed) + "; say how many it is to be, as in " + guessed[0] + ":4");
  return lines;
}

std::pair<std::string, int> choose_master(const JobSpec& spec, const HostList& list,
                                          const LaunchPlan& plan, const Environment& environment) {
  const bool is_alone = plan.hosts.size() <= 1 || plan.ranks.empty();
  const std::string address =
      is_alone ? "127.0.0.1"
               : address_of(plan.hosts[static_cast<std::size_t>(plan.ranks[0].host)], list);
  if (spec.master_port != 0) return {address, spec.master_port};
  const Environment ranks =
      Environment::from_entries(common_environment(spec, environment).entries);
  const auto range = parse_port_range(KnobReader(runtime_knobs(), ranks).text("HVRUN_PORT_RANGE"));
  // Below those that kernels give to outgoing connections.
  const PortRange wanted = !range || range->is_any() ? PortRange{20000, 29999} : *range;
  std::uniform_int_distribution<int> any(wanted.first, wanted.last);
  std::random_device source;
  return {address, any(source)};
}

MpiEnvironment mpi_environment(const JobSpec& spec, const Environment& environment,
                               const std::pair<std::string, int>& master) {
  MpiEnvironment result;
  const std::vector<std::string>& taken = contract_names();
  for (const auto& [name, value] : environment.all()) {
    const bool is_for_mpirun = matches_any(name, mpirun_variable_patterns()) ||
                               matches_any(name, host_variable_patterns()) ||
                               !spec.clean_environment;
    if (is_for_mpirun && !is_of_step(name) &&
        std::find(taken.begin(), taken.end(), name) == taken.end())
      result.own.set(name, value);
  }
  Environment common = Environment::from_entries(common_environment(spec, environment).entries);
  if (!common.has("HVRUN_BACKEND")) common.set("HVRUN_BACKEND", "mpi,native");
  if (!common.has("PYTHONUNBUFFERED")) common.set("PYTHONUNBUFFERED", "1");
  common.set("MASTER_ADDR", master.first);
  common.set("MASTER_PORT", std::to_string(master.second));
  for (const auto& [name, value] : common.all()) {
    result.own.set(name, value);
    // Open MPI hands its own on, and says so where it is asked to.
    if (is_plain_name(name) && name.rfind("OMPI_", 0) != 0) result.for_others.push_back(name);
  }
  return result;
}

}  // namespace hv::launcher
