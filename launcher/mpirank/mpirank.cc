// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/mpirank.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <optional>
#include <string_view>

#include "launcher/facts/facts.h"
#include "launcher/facts/program_file.h"
#include "launcher/mpirank/carried_output.h"
#include "launcher/mpirank/mpirun_rank.h"
#include "launcher/mpirank/not_started.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr int kNotFound = 127;  // as a shell's

// That the program is not there, or no such file that could be executed.
std::optional<wire::Problem> problem_with(const std::vector<std::string>& words,
                                          const Environment& environment) {
  std::array<char, PATH_MAX> directory{};
  if (::getcwd(directory.data(), directory.size()) == nullptr) return std::nullopt;
  std::string ignored;
  return find_program_there({words, directory.data(), {}}, environment.get_or("PATH", kDefaultPath),
                            &ignored);
}

}  // namespace

bool is_for_mpirun_rank(int argc, char** argv) {
  return argc > 2 &&
         (argv[1] == std::string_view(kCarryOutput) || argv[1] == std::string_view(kBind));
}

int run_mpirun_rank(std::vector<std::string> words, const std::string& host) {
  const bool carries = words[0] == kCarryOutput;
  const auto tell = [&](const wire::Problem& problem) {
    const std::string text = not_started_text({host, problem});
    carries ? carry_own_words(text) : (void)std::fputs(text.c_str(), stderr);
  };
  if (carries) words.erase(words.begin());
  MpirunRank rank{{}, Environment::of_process()};
  add_numbers(&rank.environment);
  if (words.size() > 2 && words[0] == kBind) {
    const std::string rule = words[1];
    words.erase(words.begin(), words.begin() + 2);
    try {
      if (rule != kBoundElsewhere)
        rank = bind_mpirun_rank(rule, rank.environment, host_facts(gather_facts(rank.environment)),
                                host);
    } catch (const Error& error) {
      tell({error.what(), error.hint()});
      return static_cast<int>(error.kind());
    }
  }
  std::optional<wire::Problem> problem = problem_with(words, rank.environment);
  if (!problem && carries) {
    problem = carry_output(words, rank);
  } else if (!problem) {
    std::fputs(rank.report.c_str(), stderr);
    const int error = become(rank, words);
    problem = {"execute " + printable(words[0], 1000) + ": " + errno_text(error), kRunByHand};
  }
  tell(*problem);
  return kNotFound;
}

}  // namespace hv::launcher
