// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/more_programs.h"

#include <algorithm>
#include <utility>

#include "launcher/cli/option_values.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// What may stand before a later program.
const std::vector<OptionShape>& shapes() {
  static const std::vector<OptionShape> all{
      {{"-n", "--np", "--num-proc"}, true}, {{"-x"}, true}, {{"--wdir"}, true}};
  return all;
}

// The options as pairs of name and value: "--np=2", "--np" "2" and "-n2" are one.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& options) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    const bool is_long = word.rfind("--", 0) == 0;
    const std::size_t equals = is_long ? word.find('=') : std::string::npos;
    if (equals != std::string::npos) {
      pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!is_long && word.size() > 2) {
      pairs.emplace_back(word.substr(0, 2), word.substr(2));
    } else {
      pairs.emplace_back(word, options.at(i + 1));
      ++i;
    }
  }
  return pairs;
}

SplitWords split_later_program(const std::vector<std::string>& words) {
  try {
    return split_at_program(words, shapes());
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, std::string(error.what()) + " behind ':'",
                "-np, -x and --wdir may stand there; what is of the whole job stands before the "
                "first program");
  }
}

ProgramSpec parse_program(SplitWords split, const std::string& directory,
                          const std::function<std::string()>& current_directory) {
  ProgramSpec program;
  program.argv = std::move(split.program);
  program.working_directory = directory;
  bool has_directory = false;
  for (const auto& [name, value] : pairs_of(split.options)) {
    const bool is_directory = name == "--wdir";
    if (value.empty())
      throw Error(ErrorKind::kUsage, name + " behind ':' has an empty value",
                  "give it one, or leave the option out; is a shell variable unset?");
    if (name == "-x") {
      program.exports.push_back(value);
      continue;
    }
    if (is_directory ? std::exchange(has_directory, true) : program.ranks > 0)
      throw Error(ErrorKind::kUsage,
                  (is_directory ? name : std::string("-np")) + " is given twice behind ':'",
                  "once for each program");
    if (is_directory)
      program.working_directory = absolute(value, current_directory);
    else
      program.ranks = parse_number_in("-np", value, 1, kMostRanks);
  }
  if (program.argv.empty())
    throw Error(ErrorKind::kUsage, "no program stands behind ':'",
                "hvrun -np 1 ./serve : -np 4 ./train; a program with an argument ':' stands behind "
                "'--'");
  return program;
}

}  // namespace

std::vector<std::string> cut_at_colon(SplitWords* split) {
  if (split->is_set_off) return {};
  std::vector<std::string>& words = split->program;
  const auto colon = std::find(words.begin(), words.end(), ":");
  if (colon == words.end()) return {};
  std::vector<std::string> rest(colon + 1, words.end());
  words.erase(colon, words.end());
  if (rest.empty()) rest.push_back(":");  // told as a missing program
  return rest;
}

std::vector<ProgramSpec> parse_more_programs(
    std::vector<std::string> words, const std::string& directory,
    const std::function<std::string()>& current_directory) {
  std::vector<ProgramSpec> programs;
  while (!words.empty()) {
    SplitWords split = split_later_program(words);
    words = cut_at_colon(&split);
    programs.push_back(parse_program(std::move(split), directory, current_directory));
  }
  return programs;
}

void add_programs(JobSpec* spec, std::vector<ProgramSpec> more) {
  if (more.empty()) return;
  spec->programs[0].ranks = spec->ranks.value_or(0);
  for (ProgramSpec& program : more) spec->programs.push_back(std::move(program));
  long ranks = 0;
  for (const ProgramSpec& program : spec->programs) {
    if (program.ranks == 0)
      throw Error(ErrorKind::kUsage,
                  "how many ranks run " + printable(program.argv.empty() ? "" : program.argv[0]) +
                      " is not said",
                  "each of several programs has its -np: hvrun -np 1 ./serve : -np 4 ./train");
    ranks += program.ranks;
  }
  if (ranks > kMostRanks)
    throw Error(ErrorKind::kUsage, "the programs have " + std::to_string(ranks) + " ranks in all",
                "at most " + std::to_string(kMostRanks));
  spec->ranks = static_cast<int>(ranks);
}

}  // namespace hv::launcher
