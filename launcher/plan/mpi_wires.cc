// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/mpi_wires.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/contract/backend_words.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostLetters = 1000;
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

// How many of them, said again and again, are all.
std::size_t period_of(const std::vector<Block>& blocks) {
  for (std::size_t period = 1; period < blocks.size(); ++period) {
    if (blocks.size() % period != 0) continue;
    std::size_t i = period;
    while (i < blocks.size() && blocks[i] == blocks[i - period]) ++i;
    if (i == blocks.size()) return period;
  }
  return blocks.size();
}

MpiWires by_itself(const CommonEnvironment& environment) {
  MpiWires wires;
  std::vector<RankEnvironment> of_programs = environment.of_programs;
  if (of_programs.empty()) of_programs.emplace_back();
  for (const RankEnvironment& program : of_programs) {
    const auto value = [&](const char* name) {
      const auto of_program = program.as_environment().get(name);
      return of_program ? *of_program : environment.variables.as_environment().get_or(name, "");
    };
    if (!names_mpi(value(kBackend))) continue;
    const std::string mpi = lower(value("HVRUN_MPI"));
    wires.pmix = wires.pmix || mpi != "mpich";
    wires.pmi = wires.pmi || mpi != "openmpi";
  }
  return wires;
}

// Exports the list with mpi before it, and adds a line if it is the user's. A list that names mpi
// stays as it is, and so does a malformed one, which the check of knobs reports.
void export_mpi_first(const std::string& list, Exports* exports, std::vector<std::string>* lines) {
  if (names_mpi(list) || (!list.empty() && !is_backend_list(list))) return;
  const std::string longer =
      "mpi," + join(backend_words(list.empty() ? kDefaultBackends : list), ",");
  exports->add_value(kBackend, longer);
  const std::string line = "--mpi puts mpi first: ranks get " + std::string(kBackend) + "=" +
                           longer + " instead of " + list;
  if (!list.empty() && std::find(lines->begin(), lines->end(), line) == lines->end())
    lines->push_back(line);
}

}  // namespace

MpiWires mpi_wires(WireMpi wanted, const CommonEnvironment& environment) {
  if (wanted == WireMpi::kByItself) return by_itself(environment);
  return {wanted == WireMpi::kPmix || wanted == WireMpi::kBoth,
          wanted == WireMpi::kPmi || wanted == WireMpi::kBoth};
}

std::vector<std::string> put_mpi_first(const Environment& own, JobSpec* spec) {
  const CommonEnvironment environment = common_environment(*spec, own);
  std::vector<std::string> lines;
  export_mpi_first(environment.variables.as_environment().get_or(kBackend, ""),
                   &spec->environment.exports, &lines);
  for (std::size_t i = 0; i < spec->programs.size(); ++i)
    if (const auto list = environment.of_programs[i].as_environment().get(kBackend))
      export_mpi_first(*list, &spec->programs[i].exports, &lines);
  return lines;
}

std::string pmi_mapping(const std::vector<int>& host_of_rank) {
  const std::vector<Block> blocks = blocks_of(host_of_rank);
  std::string text = "(vector";
  for (std::size_t i = 0; i < period_of(blocks); ++i) {
    const Block& block = blocks[i];
    text += ",(" + std::to_string(block.first) + "," + std::to_string(block.hosts) + "," +
            std::to_string(block.ranks) + ")";
    if (text.size() > kMostLetters) return {};
  }
  return text + ")";
}

}  // namespace hv::launcher
