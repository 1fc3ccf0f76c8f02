// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/program_search.h"

#include <algorithm>

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

[[noreturn]] void unknown_option(const std::string& name, const std::vector<OptionShape>& options) {
  std::vector<std::string> candidates;
  for (const OptionShape& option : options) {
    candidates.insert(candidates.end(), option.names.begin(), option.names.end());
  }
  // mpirun takes long names behind one hyphen, too.
  const bool is_long = name.rfind("--", 0) != 0 && name.size() > 2;
  const auto guess = nearest(is_long ? "-" + name : name, candidates);
  throw Error(ErrorKind::kUsage, "unknown option " + printable(name),
              (guess ? "did you mean " + *guess + "? " : std::string()) +
                  "'hvrun --help' lists the options; options of the program stand behind its name");
}

// "-np" is everybody's habit, but a short option has one letter: it is rewritten.
std::string normalised(const std::string& word) {
  if (word.rfind("-np", 0) != 0) return word;
  const std::string rest = word.substr(3);
  if (rest.empty() || rest[0] == '=') return "-" + word;
  return rest.find_first_not_of("0123456789") == std::string::npos ? "--np=" + rest : word;
}

// The option's name in "--name=value", "--name", "-nvalue", "-n".
std::string name_in(const std::string& word) {
  if (word.rfind("--", 0) == 0) return word.substr(0, word.find('='));
  return word.substr(0, 2);
}

// "-vh" is -v and -h; "-host" is neither.
bool is_cluster_of_flags(const std::string& word, const std::vector<OptionShape>& options) {
  return std::all_of(word.begin() + 1, word.end(), [&options](char letter) {
    const OptionShape* option = find_option({'-', letter}, options);
    return option && !option->takes_value;
  });
}

}  // namespace

SplitWords split_at_program(const std::vector<std::string>& words,
                            const std::vector<OptionShape>& options) {
  SplitWords result;
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    if (words[i] == "--") {
      ++i;
      break;
    }
    if (words[i].size() < 2 || words[i][0] != '-') break;
    const std::string word = normalised(words[i]);
    const std::string name = name_in(word);
    const OptionShape* option = find_option(name, options);
    const bool is_long = name.rfind("--", 0) == 0;
    if (!option || (!is_long && !option->takes_value && !is_cluster_of_flags(word, options)))
      unknown_option(is_long ? name : word, options);
    result.options.push_back(word);
    if (!option->takes_value || word != name) continue;  // no value, or it is glued to the name
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

}  // namespace hv::launcher
