// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_command.h"

#include <algorithm>
#include <cstdint>

#include "launcher/mpi/mpi_output.h"
#include "launcher/mpi/mpi_reach.h"
#include "launcher/mpirank/carried_output.h"
#include "launcher/mpirank/mpirun_rank.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Words = std::vector<std::string>;

// One argument may have 128 KiB on Linux.
constexpr std::size_t kMostHostBytes = 120 << 10;
// All of them and the environment have 2 MiB there, unless the stack's limit says otherwise.
constexpr std::size_t kMostBytes = 1 << 20;

void add(Words* words, const Words& more) { words->insert(words->end(), more.begin(), more.end()); }

std::string host_word(const HostList& list, const LaunchPlan& plan, std::size_t host) {
  const PlannedHost& planned = plan.hosts[host];
  if (list.this_machine) return "localhost:" + std::to_string(planned.ranks);
  const std::string host_name = address_of(planned, list);
  if (host_name.find(':') != std::string::npos)
    throw Error(ErrorKind::kUsage,
                "--mpi: mpirun takes no address with colons for a host: " + printable(host_name),
                "give it a name in ~/.ssh/config or /etc/hosts, and name that");
  return host_name + ":" + std::to_string(planned.ranks);
}

std::string host_words(const HostList& list, const LaunchPlan& plan) {
  Words words;
  for (std::size_t host = 0; host < plan.hosts.size(); ++host)
    words.push_back(host_word(list, plan, host));
  const std::string text = join(words, ",");
  if (text.size() <= kMostHostBytes) return text;
  throw Error(ErrorKind::kUsage,
              "--mpi: the names of " + std::to_string(words.size()) +
                  " hosts are too long for a command line",
              "start that many without --mpi, or by mpirun with a hostfile of its own");
}

// All ranks of a host, then all of the next.
bool goes_by_slot(const LaunchPlan& plan) {
  return std::is_sorted(plan.ranks.begin(), plan.ranks.end(),
                        [](const auto& one, const auto& next) { return one.host < next.host; });
}

// One for each host in turn, to the end.
bool goes_round(const LaunchPlan& plan) {
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    if (plan.ranks[rank].host != static_cast<int>(rank % plan.hosts.size())) return false;
  return true;
}

// Consecutive ranks of one program, and of one host if that is wanted.
struct Run {
  int host = 0, program = 0, ranks = 0;
};
std::vector<Run> runs_of(const LaunchPlan& plan, bool by_host) {
  std::vector<Run> runs;
  for (const PlannedRank& rank : plan.ranks) {
    if (runs.empty() || runs.back().program != rank.program ||
        (by_host && runs.back().host != rank.host))
      runs.push_back({rank.host, rank.program, 0});
    ++runs.back().ranks;
  }
  return runs;
}

bool is_crowded(const LaunchPlan& plan) {
  return std::any_of(plan.hosts.begin(), plan.hosts.end(),
                     [](const PlannedHost& host) { return host.ranks > host.slots; });
}

// What --mpi-args says itself is not said before.
bool says(const JobSpec& spec, const Words& names) {
  return std::any_of(spec.mpi_args.begin(), spec.mpi_args.end(), [&](const std::string& word) {
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    return word.rfind('-', 0) == 0 && std::find(names.begin(), names.end(), name) != names.end();
  });
}

std::string binding_of(const JobSpec& spec) {
  if (spec.bind_to == BindTo::kCore) return "core";
  if (spec.bind_to == BindTo::kNuma) return "numa";
  return "none";
}

bool says_binding(const JobSpec& spec) {
  return says(spec,
              {"bind-to", "bind-to-core", "bind-to-none", "cpu-set", "cpu-list", "rankfile", "rf"});
}

// hvrun-agent's, which stands between mpirun and each rank: it carries Open MPI's output, binds
// ranks where nobody says how, by what it finds on its host, and gives them their numbers by names
// that are no MPI's. Hosts without it have MPICH and --bind-to none.
Words carrier_words(const Mpirun& mpirun, const JobSpec& spec) {
  Words words;
  const bool is_bare = mpirun.kind == MpiKind::kHydra && spec.bind_to == BindTo::kNone;
  if (mpirun.agent.empty() || is_bare) return words;
  if (mpirun.kind == MpiKind::kOpenMpi) words.push_back(kCarryOutput);
  const bool binds = binds_by_itself(mpirun, spec), in_turn = spec.map_by.by == MapBy::kNuma;
  add(&words, {kBind, binds ? binding_words(in_turn, spec.report_bindings) : kBoundElsewhere});
  words.insert(words.begin(), mpirun.agent);
  return words;
}

bool has_own_mapping(const JobSpec& spec) {
  return says(spec,
              {"map-by", "npernode", "N", "ppr", "rankfile", "rf", "bynode", "byslot", "rank-by"});
}

// Open MPI's mpirun deals ranks out over hosts by itself.
bool is_dealt_out(const JobSpec& spec, const LaunchPlan& plan) {
  return spec.programs.size() == 1 && !goes_by_slot(plan) && goes_round(plan) &&
         spec.map_by.by != MapBy::kNuma && !has_own_mapping(spec);
}

Words openmpi_options(const Mpirun& mpirun, const JobSpec& spec, const HostList& list,
                      const LaunchPlan& plan) {
  constexpr int kNewOptions = 5;
  Words words = mpirun.major >= kNewOptions ? Words{"--output", "tag"} : Words{"--tag-output"};
  // It waits for so long before SIGTERM, too, whenever it ends ranks: a second, left to itself.
  if (spec.grace > JobSpec().grace)
    add(&words, {"--mca", "odls_base_sigkill_timeout",
                 std::to_string(std::chrono::ceil<std::chrono::seconds>(
                                    std::min<Duration>(spec.grace, std::chrono::hours(1000)))
                                    .count())});
  add(&words, reach_of_openmpi(spec, list));
  // Its ranks spin while they wait, unless it knows that there are too many.
  if (is_crowded(plan)) add(&words, {"--mca", "mpi_yield_when_idle", "1"});
  if (spec.report_bindings && !binds_by_itself(mpirun, spec)) words.push_back("--report-bindings");
  if (!says_binding(spec)) add(&words, {"--bind-to", binding_of(spec)});
  if (has_own_mapping(spec)) return words;
  if (is_dealt_out(spec, plan)) {
    add(&words, {"--map-by", "node", "--rank-by", "node"});
  } else {
    add(&words, {"--map-by", spec.map_by.by == MapBy::kNuma ? "numa" : "slot"});
  }
  return words;
}

// Each rank's part has all names of variables again.
void check_size(const Words& words, std::size_t parts) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size() + 1;
  if (parts == 1 || bytes <= kMostBytes) return;
  throw Error(ErrorKind::kUsage,
              "--mpi: Open MPI's mpirun is told this order of ranks in " + std::to_string(parts) +
                  " parts, which are too long for a command line",
              "--map-by slot, or as many ranks on each host; or -x with fewer variables");
}

Words openmpi_words(const Mpirun& mpirun, const JobSpec& spec, const HostList& list,
                    const LaunchPlan& plan, const Words& for_others) {
  Words words{mpirun.program};
  add(&words, openmpi_options(mpirun, spec, list, plan));
  add(&words, spec.mpi_args);
  Words exports;
  for (const std::string& name : for_others) add(&exports, {"-x", name});
  const bool is_simple =
      spec.programs.size() == 1 && (goes_by_slot(plan) || is_dealt_out(spec, plan));
  const std::string all_hosts = host_words(list, plan);
  const std::vector<Run> runs = runs_of(plan, !is_simple);
  bool is_first = true;
  for (const Run& run : runs) {
    const ProgramSpec& program = spec.programs[static_cast<std::size_t>(run.program)];
    if (!std::exchange(is_first, false)) words.push_back(":");
    add(&words, exports);
    add(&words, {"-np", std::to_string(run.ranks), "-host",
                 is_simple ? all_hosts : host_word(list, plan, static_cast<std::size_t>(run.host)),
                 "--wdir", program.working_directory});
    add(&words, carrier_words(mpirun, spec));
    add(&words, program.argv);
  }
  check_size(words, runs.size());
  return words;
}

void check_for_hydra(const Mpirun& mpirun, const JobSpec& spec, const LaunchPlan& plan) {
  if (!goes_by_slot(plan) && !goes_round(plan))
    throw Error(ErrorKind::kUsage,
                "--mpi: MPICH's mpirun cannot be told this order of ranks on hosts",
                "--map-by slot, or as many ranks on each host; or HVRUN_MPI=openmpi");
  for (const ProgramSpec& program : spec.programs)
    if (program.working_directory != spec.programs[0].working_directory)
      throw Error(ErrorKind::kUsage,
                  "--mpi: MPICH's mpirun has one working directory for all programs",
                  "leave out --wdir of later programs; or HVRUN_MPI=openmpi");
  if (spec.report_bindings && !binds_by_itself(mpirun, spec))
    throw Error(ErrorKind::kUsage, "--mpi: MPICH's mpirun has no --report-bindings",
                "set HYDRA_TOPO_DEBUG=1 instead; or HVRUN_MPI=openmpi");
}

Words hydra_words(const Mpirun& mpirun, const JobSpec& spec, const HostList& list,
                  const LaunchPlan& plan, const Words& for_others, const std::string& tag) {
  check_for_hydra(mpirun, spec, plan);
  Words words{mpirun.program, "-prepend-pattern", hydra_tag_begin(tag) + "%r>"};
  std::string hosts = host_words(list, plan);
  // It goes round hosts that have one slot each.
  if (!goes_by_slot(plan)) {
    Words each;
    for (const std::string& word : split(hosts, ','))
      each.push_back(word.substr(0, word.rfind(':')) + ":1");
    hosts = join(each, ",");
  }
  add(&words, reach_of_hydra(spec, list));
  add(&words, {"-hosts", hosts});
  if (!says(spec, {"bind-to"})) add(&words, {"-bind-to", binding_of(spec)});
  if (spec.map_by.by == MapBy::kNuma && !says(spec, {"map-by"})) add(&words, {"-map-by", "numa"});
  if (!for_others.empty()) add(&words, {"-genvlist", join(for_others, ",")});
  add(&words, {"-wdir", spec.programs[0].working_directory});
  add(&words, spec.mpi_args);
  bool is_first = true;
  for (const Run& run : runs_of(plan, false)) {
    if (!std::exchange(is_first, false)) words.push_back(":");
    add(&words, {"-np", std::to_string(run.ranks)});
    add(&words, carrier_words(mpirun, spec));
    add(&words, spec.programs[static_cast<std::size_t>(run.program)].argv);
  }
  return words;
}

void check_programs(const JobSpec& spec) {
  for (const ProgramSpec& program : spec.programs)
    for (const std::string& word : program.argv)
      if (word == ":")
        throw Error(ErrorKind::kUsage,
                    "--mpi: mpirun takes the argument ':' for the end of a program's",
                    "leave it out, or start the program without --mpi");
}

}  // namespace

MpiCommand make_mpi_command(const Mpirun& mpirun, const JobSpec& spec, const HostList& list,
                            const LaunchPlan& plan, const Words& for_others,
                            const std::string& tag) {
  check_programs(spec);
  const Words names = are_all_here(list) ? Words{} : for_others;
  if (mpirun.kind == MpiKind::kOpenMpi) return {openmpi_words(mpirun, spec, list, plan, names), {}};
  return {hydra_words(mpirun, spec, list, plan, names, tag), variables_for_hydra(spec, list)};
}

std::string address_of(const PlannedHost& host, const HostList& list) {
  const std::string& written = list.entries[host.entry].address;
  return written.empty() ? host.name : written;
}

bool binds_by_itself(const Mpirun& mpirun, const JobSpec& spec) {
  return !mpirun.agent.empty() && spec.bind_to == BindTo::kByItself && !says_binding(spec);
}

std::string as_shell_line(const MpiCommand& command) {
  Words words;
  for (const std::string& variable : command.variables) {
    const std::size_t equals = variable.find('=') + 1;
    words.push_back(variable.substr(0, equals) + shell_quote(variable.substr(equals)));
  }
  for (const std::string& word : command.argv)
    words.push_back(shell_quote(printable(word, SIZE_MAX)));
  return join(words, " ");
}

int exit_code_of_mpirun(const Mpirun& mpirun, int shell_code, const std::string& words) {
  if (mpirun.kind != MpiKind::kHydra || shell_code == 0) return shell_code;
  // "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)". Its own code is of all
  // ranks' together, bit by bit.
  const std::size_t line = words.find("EXIT STRING");
  const std::string begin = "(signal ";
  const std::size_t at = words.find(begin, std::min(line, words.size()));
  if (at == std::string::npos || at > words.find('\n', line)) return shell_code;
  const std::size_t from = at + begin.size();
  const auto number = parse_integer(words.substr(from, words.find(')', from) - from));
  return number && *number > 0 && *number < 65 ? 128 + static_cast<int>(*number) : shell_code;
}

}  // namespace hv::launcher
