// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/mpirun_rank.h"

#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "launcher/plan/rank_resources.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kTold = "+told";

struct MpirunPlace {
  int rank = 0, local_rank = 0, local_size = 0;
};

// Of a rank, its number on its host, how many there are, and how many in all: Open MPI's, Hydra's.
constexpr const char* kNames[][4] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE"}};

MpirunPlace place_of_rank(const Environment& environment) {
  for (const auto& names : kNames) {
    const auto rank = parse_integer(environment.get_or(names[0], ""));
    const auto local = parse_integer(environment.get_or(names[1], ""));
    const auto size = parse_integer(environment.get_or(names[2], ""));
    if (rank && local && size && *rank >= 0 && *local >= 0 && *local < *size && *size <= kMostRanks)
      return {static_cast<int>(*rank), static_cast<int>(*local), static_cast<int>(*size)};
  }
  throw Error(ErrorKind::kUsage,
              "bind a rank: neither Open MPI's variables (OMPI_COMM_WORLD_LOCAL_RANK, ...) nor "
              "MPICH's (MPI_LOCALRANKID, ...) say which of how many ranks of this host it is",
              "--bind-to none");
}

}  // namespace

void add_numbers(Environment* environment) {
  constexpr const char* kOurs[] = {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE"};
  for (const auto& names : kNames) {
    if (!environment->has(names[0])) continue;
    for (std::size_t i = 0; i < std::size(kOurs); ++i)
      if (const auto value = environment->get(names[i])) environment->set(kOurs[i], *value);
    return;
  }
}

std::string binding_words(bool in_turn, bool is_told) {
  return std::string(in_turn ? "numa" : "slot") + (is_told ? kTold : "");
}

MpirunRank bind_mpirun_rank(const std::string& words, const Environment& environment,
                            const HostFacts& facts, const std::string& host) {
  const std::string rule = words.substr(0, words.find('+'));
  const bool is_told = words == rule + kTold;
  if ((rule != "slot" && rule != "numa") || (!is_told && words != rule))
    throw Error(ErrorKind::kUsage, "bind a rank: there is no rule '" + printable(words) + "'",
                "hvrun and hvrun-agent of one build");
  const MpirunPlace place = place_of_rank(environment);
  JobSpec spec;
  spec.programs.push_back({{}, "", place.local_size});
  spec.ranks = place.local_size;
  spec.oversubscribe = true;
  if (rule == "numa") spec.map_by.by = MapBy::kNuma;
  HostList list;
  list.this_machine = true;
  LaunchPlan plan = make_plan(spec, list, {facts});
  PlannedRank& planned = plan.ranks[static_cast<std::size_t>(place.local_rank)];
  MpirunRank result{mask_of({planned.cores.begin(), planned.cores.end()}), environment};
  for (const auto& [name, value] : planned.variables)
    if (!environment.has(name)) result.environment.set(name, value);
  planned.identity.rank = place.rank;
  plan.hosts[0].name = host;
  if (is_told) result.report = "hvrun: " + bindings_as_text({plan.hosts, {planned}, {}});
  return result;
}

int become(const MpirunRank& rank, const std::vector<std::string>& program) {
  if (!rank.cores.empty() && !run_on(rank.cores)) return errno;
  std::vector<std::string> entries = rank.environment.entries();
  std::vector<char*> arguments, variables;
  for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
  for (std::string& entry : entries) variables.push_back(entry.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  ::execvpe(arguments[0], arguments.data(), variables.data());
  return errno;
}

}  // namespace hv::launcher
