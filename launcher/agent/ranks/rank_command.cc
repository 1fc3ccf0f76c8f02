// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_command.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "launcher/facts/exec_limit.h"
#include "launcher/facts/program_file.h"
#include "src/base/core_mask.h"
#include "src/base/name_pattern.h"

namespace hv::launcher {
namespace {

const wire::Program& program_of(const wire::Launch& launch, const wire::LaunchRank& rank) {
  return launch.programs.at(rank.program);
}

// The rank with the most variables of its own stands for all ranks of a program.
std::optional<wire::Problem> size_problem(const wire::Launch& launch, const RankPrograms& found) {
  const auto bytes_of = [](const wire::LaunchRank& rank) {
    std::size_t bytes = 0;
    for (const auto& [name, value] : rank.environment) bytes += name.size() + value.size();
    return bytes;
  };
  std::map<std::uint32_t, std::size_t> biggest;  // by program: an index of launch.ranks
  for (std::size_t i = 0; i < launch.ranks.size(); ++i) {
    const auto at = biggest.try_emplace(launch.ranks[i].program, i).first;
    if (bytes_of(launch.ranks[i]) > bytes_of(launch.ranks[at->second])) at->second = i;
  }
  for (const auto& [program, i] : biggest) {
    const wire::LaunchRank& rank = launch.ranks[i];
    const RankEnvironment environment = found.environments.of_rank(rank);
    if (auto problem = exec_size_problem(found.paths[i], program_of(launch, rank).argv,
                                         environment.entries(), exec_limits()))
      return problem;
  }
  return std::nullopt;
}

}  // namespace

bool is_well_formed(const wire::Launch& launch) {
  std::set<std::uint32_t> numbers;
  return std::all_of(launch.ranks.begin(), launch.ranks.end(), [&](const wire::LaunchRank& rank) {
    const auto highest = std::max_element(rank.cores.begin(), rank.cores.end());
    return rank.program < launch.programs.size() && numbers.insert(rank.rank).second &&
           (highest == rank.cores.end() || *highest < kMostCores);
  });
}

RankEnvironments::RankEnvironments(const wire::Launch& launch, const Environment& own) {
  RankEnvironment login;
  const NamePatterns host_variables(launch.host_variables);
  for (const auto& [name, value] : own.all())
    if (host_variables.has_match(name)) login.set(name, value);
  for (const wire::Program& program : launch.programs) {
    RankEnvironment& variables = of_programs_.emplace_back(login);
    variables.set("PWD", program.directory);
    variables.set_all(launch.environment);
    variables.set_all(program.environment);
    variables.set_default("PYTHONUNBUFFERED", "1");
  }
}

RankEnvironment RankEnvironments::of_rank(const wire::LaunchRank& rank) const {
  RankEnvironment variables = of_programs_.at(rank.program);
  variables.set_all(rank.environment);
  return variables;
}

std::string RankEnvironments::path_of_rank(const wire::LaunchRank& rank) const {
  constexpr const char* kPath = "PATH";
  const auto own = std::find_if(rank.environment.rbegin(), rank.environment.rend(),
                                [](const auto& variable) { return variable.first == kPath; });
  if (own != rank.environment.rend()) return own->second;
  return of_programs_.at(rank.program).as_environment().get_or(kPath, kDefaultPath);
}

RankPrograms rank_programs(const wire::Launch& launch, const Environment& own) {
  RankPrograms result{RankEnvironments(launch, own)};
  // The search is done once for all ranks with the same program and PATH.
  std::string found, found_along;
  std::optional<std::uint32_t> found_for;
  for (const wire::LaunchRank& rank : launch.ranks) {
    const std::string path = result.environments.path_of_rank(rank);
    if (found_for != rank.program || path != found_along) {
      found_along = path;
      found_for = rank.program;
      result.problem = find_program_there(program_of(launch, rank), path, &found);
      if (result.problem) return result;
    }
    result.paths.push_back(found);
  }
  result.problem = size_problem(launch, result);
  return result;
}

Command rank_command(const wire::Launch& launch, const wire::LaunchRank& rank,
                     const RankEnvironment& environment, const std::string& program) {
  Command command;
  command.argv = program_of(launch, rank).argv;
  command.directory = program_of(launch, rank).directory;
  command.environment = environment.entries();
  command.program = program;
  return command;
}

}  // namespace hv::launcher
