// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/program_search.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "launcher/cli/foreign_options.h"
#include "launcher/cli/option_values.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

const OptionShape* find_option(const std::string& name, const std::vector<OptionShape>& options) {
  for (const OptionShape& option : options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end())
      return &option;
  }
  return nullptr;
}

// The option's name in "--name=value", "--name".
std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

// "did you mean --hosts? ", "that is --npernode here. "; "" where nothing is similar.
std::string meant_by(const std::string& name, const std::vector<std::string>& candidates) {
  const bool in_script =
      std::find(candidates.begin(), candidates.end(), "--nodes") != candidates.end();
  if (const auto meaning = meaning_of_foreign_option(name_in(name), in_script))
    return *meaning + ". ";
  // All options of one letter are equally near.
  if (name.size() <= 2) return "";
  // mpirun accepts long names after one hyphen, too.
  const auto guess = nearest(name.rfind("--", 0) == 0 ? name : "-" + name, candidates);
  return guess ? "did you mean " + *guess + "? " : "";
}

[[noreturn]] void unknown_option(const std::string& name, const std::vector<OptionShape>& options) {
  std::vector<std::string> candidates;
  for (const OptionShape& option : options) {
    candidates.insert(candidates.end(), option.names.begin(), option.names.end());
  }
  throw Error(ErrorKind::kUsage, "unknown option " + printable(name),
              meant_by(name, candidates) +
                  "'hvrun --help' lists the options; options of the program stand behind its name");
}

void refuse_detached_value(const std::string& name, const std::string& word) {
  const auto advice = advice_on_detached_value(name, word);
  if (!advice) return;
  throw Error(ErrorKind::kUsage,
              name + " takes a value only behind '=', so '" + word + "' would be the program",
              *advice + "; for a program called " + word + ": " + name + " -- " + word);
}

// Rewrites "-np", because a short option has one letter, and some options of horovodrun.
std::string normalised(const std::string& word) {
  if (word == "-cb") return "--check-build";
  for (const std::string name : {"-hostfile", "-prefix-timestamp"})
    if (word == name || word.rfind(name + "=", 0) == 0) return "-" + word;
  if (word.rfind("-np", 0) != 0) return word;
  const std::string rest = word.substr(3);
  if (rest.empty() || rest[0] == '=') return "-" + word;
  return rest.find_first_not_of("0123456789") == std::string::npos ? "--np=" + rest : word;
}

// The word is a name of mpirun's, and not -l, -i, -n or -p with a value in the same word. -n and -p
// take numbers.
bool is_foreign_name(const std::string& word, std::size_t letter) {
  if (word == "-launcher" || word == "-launcher-exec" || word == "-iface") return true;
  const bool takes_number = word[letter] == 'n' || word[letter] == 'p';
  return takes_number && letter + 1 < word.size() &&
         std::isalpha(static_cast<unsigned char>(word[letter + 1]));
}

// Reads "-vh" as -v and -h, "-vn4" as -v and -n 4. Returns the last option, or nullptr for a word
// such as "-host". Sets *is_value_glued: the option's value is in the word.
const OptionShape* last_of_cluster(const std::string& word, const std::vector<OptionShape>& options,
                                   bool* is_value_glued) {
  const OptionShape* option = nullptr;
  for (std::size_t i = 1; i < word.size(); ++i) {
    option = find_option({'-', word[i]}, options);
    if (!option || is_foreign_name(word, i)) return nullptr;
    *is_value_glued = option->takes_value && i + 1 < word.size();
    if (option->takes_value) break;
  }
  return option;
}

}  // namespace

SplitWords split_at_program(const std::vector<std::string>& words,
                            const std::vector<OptionShape>& options) {
  SplitWords result;
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    if (words[i] == "--") {
      result.is_set_off = true;
      ++i;
      break;
    }
    if (words[i].size() < 2 || words[i][0] != '-') break;
    const std::string word = normalised(words[i]);
    const std::string name = name_in(word);
    const bool is_long = name.rfind("--", 0) == 0;
    bool is_value_glued = word != name;
    const OptionShape* option =
        is_long ? find_option(name, options) : last_of_cluster(word, options, &is_value_glued);
    if (!option) unknown_option(is_long ? name : word, options);
    result.begins.push_back(result.options.size());
    result.options.push_back(word);
    if (is_long && word.size() == name.size() + 1) refuse_empty_value(name);
    if (!option->takes_value && !is_value_glued && i + 1 < words.size())
      refuse_detached_value(name, words[i + 1]);
    if (!option->takes_value || is_value_glued) continue;
    if (i + 1 >= words.size()) {
      throw Error(ErrorKind::kUsage, words[i] + " needs a value", "'hvrun --help' shows its form");
    }
    result.options.back() = word;
    result.options.push_back(words[++i]);
  }
  result.program.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())),
                        words.end());
  return result;
}

namespace {

// The options that may stand before a later program.
const std::vector<OptionShape>& shapes() {
  static const std::vector<OptionShape> all{
      {{"-n", "--np", "--num-proc"}, true}, {{"-x"}, true}, {{"--wdir"}, true}};
  return all;
}

// The options as pairs of name and value: "--np=2", "--np" "2", "-n2".
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
    if (value.empty()) refuse_empty_value(name + " behind ':'");
    if (name == "-x") {
      program.exports.add(value);
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
  if (rest.empty()) rest.push_back(":");  // reported as a missing program
  return rest;
}

std::vector<std::string> typed_options(const std::vector<std::string>& words,
                                       const SplitWords& split) {
  const std::size_t behind = split.program.size() + (split.is_set_off ? 1 : 0);
  return {words.begin(), words.end() - static_cast<std::ptrdiff_t>(behind)};
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
