// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/mpi_wires.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/contract/backend_words.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostMappingBytes = 1000;
constexpr const char* kBackend = "HVRUN_BACKEND";

struct Block {
  int first = 0, hosts = 0, ranks = 0;
  bool operator==(const Block&) const = default;
};

std::vector<Block> blocks_of(const std::vector<int>& host_of_rank) {
  std::vector<Block> runs;
  for (const int host : host_of_rank) {
    if (!runs.empty() && runs.back().first == host)
      ++runs.back().ranks;
    else
      runs.push_back({host, 1, 1});
  }
  std::vector<Block> blocks;
  for (const Block& run : runs) {
    Block* const last = blocks.empty() ? nullptr : &blocks.back();
    if (last != nullptr && run.ranks == last->ranks && run.first == last->first + last->hosts)
      ++last->hosts;
    else
      blocks.push_back(run);
  }
  return blocks;
}

// Length of the shortest prefix that, repeated, makes up all blocks.
std::size_t period_of(const std::vector<Block>& blocks) {
  for (std::size_t period = 1; period < blocks.size(); ++period) {
    if (blocks.size() % period != 0) continue;
    std::size_t i = period;
    while (i < blocks.size() && blocks[i] == blocks[i - period]) ++i;
    if (i == blocks.size()) return period;
  }
  return blocks.size();
}

MpiWires wires_for_backends(const CommonEnvironment& environment) {
  MpiWires wires;
  std::vector<RankEnvironment> programs = environment.program_variables;
  if (programs.empty()) programs.emplace_back();
  for (const RankEnvironment& program : programs) {
    const auto value = [&](const char* name) {
      return program.as_environment().get_or(
          name, environment.variables.as_environment().get_or(name, ""));
    };
    if (!names_mpi(value(kBackend))) continue;
    const std::string mpi = lower(value("HVRUN_MPI"));
    wires.pmix = wires.pmix || mpi != "mpich";
    wires.pmi = wires.pmi || mpi != "openmpi";
  }
  return wires;
}

// list: HVRUN_BACKEND's value. Puts mpi first in it, and adds a line if the list is the user's.
// Keeps a list that names mpi, and a malformed one, which check_knobs_of_ranks() reports.
void set_mpi_first(const std::string& list, RankEnvironment* variables,
                   std::vector<std::string>* lines) {
  if (names_mpi(list) || (!list.empty() && !is_backend_list(list))) return;
  const std::string longer =
      "mpi," + join(backend_words(list.empty() ? kDefaultBackends : list), ",");
  variables->set(kBackend, longer);
  const std::string line = "--mpi puts mpi first: ranks get " + std::string(kBackend) + "=" +
                           longer + " instead of " + list;
  if (!list.empty() && std::find(lines->begin(), lines->end(), line) == lines->end())
    lines->push_back(line);
}

}  // namespace

MpiWires mpi_wires(WireMpi requested, const CommonEnvironment& environment) {
  if (requested == WireMpi::kAuto) return wires_for_backends(environment);
  return {requested == WireMpi::kPmix || requested == WireMpi::kBoth,
          requested == WireMpi::kPmi || requested == WireMpi::kBoth};
}

std::vector<std::string> put_mpi_first(CommonEnvironment* environment) {
  std::vector<std::string> lines;
  set_mpi_first(environment->variables.as_environment().get_or(kBackend, ""),
                &environment->variables, &lines);
  for (RankEnvironment& program : environment->program_variables)
    if (const auto list = program.as_environment().get(kBackend))
      set_mpi_first(*list, &program, &lines);
  return lines;
}

std::string pmi_mapping(const std::vector<int>& host_of_rank) {
  const std::vector<Block> blocks = blocks_of(host_of_rank);
  std::string text = "(vector";
  for (std::size_t i = 0; i < period_of(blocks); ++i) {
    const Block& block = blocks[i];
    text += ",(" + std::to_string(block.first) + "," + std::to_string(block.hosts) + "," +
            std::to_string(block.ranks) + ")";
    if (text.size() > kMostMappingBytes) return {};
  }
  return text + ")";
}

}  // namespace hv::launcher
