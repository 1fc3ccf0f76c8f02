// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_command.h"

#include <algorithm>

#include "launcher/facts/program_file.h"
#include "src/base/core_mask.h"
#include "src/base/name_pattern.h"

namespace hv::launcher {
namespace {

void add_entry(Environment* environment, const std::string& entry) {
  const std::size_t equals = entry.find('=');
  if (equals != std::string::npos && equals > 0)
    environment->set(entry.substr(0, equals), entry.substr(equals + 1));
}

const wire::Program& program_of(const wire::Launch& launch, const wire::LaunchRank& rank) {
  return launch.programs.at(rank.program);
}

}  // namespace

bool is_well_formed(const wire::Launch& launch) {
  return std::all_of(launch.ranks.begin(), launch.ranks.end(),
                     [&launch](const wire::LaunchRank& rank) {
                       const auto highest = std::max_element(rank.cores.begin(), rank.cores.end());
                       return rank.program < launch.programs.size() &&
                              (highest == rank.cores.end() || *highest < kMostCores);
                     });
}

std::vector<std::string> environment_of_rank(const wire::Launch& launch,
                                             const wire::LaunchRank& rank, const Environment& own) {
  Environment result;
  for (const auto& [name, value] : own.all()) {
    for (const std::string& pattern : launch.host_variables) {
      if (matches_pattern(name, pattern)) result.set(name, value);
    }
  }
  const wire::Program& program = program_of(launch, rank);
  result.set("PWD", program.directory);
  for (const std::string& entry : launch.environment) add_entry(&result, entry);
  for (const std::string& entry : program.environment) add_entry(&result, entry);
  for (const auto& [name, value] : rank.environment) result.set(name, value);
  if (!result.has("PYTHONUNBUFFERED")) result.set("PYTHONUNBUFFERED", "1");
  return result.entries();
}

RankPrograms rank_programs(const wire::Launch& launch, const Environment& own) {
  RankPrograms result;
  // The search is done once for all ranks with the same program and PATH.
  std::string found, found_along;
  std::optional<std::uint32_t> found_for;
  for (const wire::LaunchRank& rank : launch.ranks) {
    const std::string path = Environment::from_entries(environment_of_rank(launch, rank, own))
                                 .get_or("PATH", kDefaultPath);
    if (found_for != rank.program || path != found_along) {
      found_along = path;
      found_for = rank.program;
      result.problem = find_program_there(program_of(launch, rank), path, &found);
      if (result.problem) return result;
    }
    result.paths.push_back(found);
  }
  return result;
}

Command rank_command(const wire::Launch& launch, const wire::LaunchRank& rank,
                     const Environment& own, const std::string& program) {
  Command command;
  command.argv = program_of(launch, rank).argv;
  command.directory = program_of(launch, rank).directory;
  command.environment = environment_of_rank(launch, rank, own);
  command.program = program;
  return command;
}

}  // namespace hv::launcher
