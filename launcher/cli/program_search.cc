// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/program_search.h"

#include <algorithm>
#include <cctype>

#include "launcher/cli/foreign_options.h"
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

// "did you mean --hosts? ", "that is --npernode here. "; "" where nobody knows.
std::string meant_by(const std::string& name, const std::vector<std::string>& candidates) {
  const bool in_script =
      std::find(candidates.begin(), candidates.end(), "--nodes") != candidates.end();
  if (const auto meaning = meaning_of_foreign_option(name_in(name), in_script))
    return *meaning + ". ";
  // Of one letter every other is as near.
  if (name.size() <= 2) return "";
  // mpirun takes long names behind one hyphen, too.
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

// "-np" is everybody's habit, but a short option has one letter: it is rewritten, as are some of
// horovodrun's.
std::string normalised(const std::string& word) {
  if (word == "-cb") return "--check-build";
  for (const std::string name : {"-hostfile", "-prefix-timestamp"})
    if (word == name || word.rfind(name + "=", 0) == 0) return "-" + word;
  if (word.rfind("-np", 0) != 0) return word;
  const std::string rest = word.substr(3);
  if (rest.empty() || rest[0] == '=') return "-" + word;
  return rest.find_first_not_of("0123456789") == std::string::npos ? "--np=" + rest : word;
}

// A name of mpirun's, not a value that is glued to -l or -i, nor to -n or -p, which take numbers.
bool is_foreign_name(const std::string& word, std::size_t letter) {
  if (word == "-launcher" || word == "-launcher-exec" || word == "-iface") return true;
  const bool takes_number = word[letter] == 'n' || word[letter] == 'p';
  return takes_number && letter + 1 < word.size() &&
         std::isalpha(static_cast<unsigned char>(word[letter + 1]));
}

// "-vh" is -v and -h, "-vn4" is -v and -n 4; "-host" is none of these. Returns the last option, or
// nullptr; is_value_glued: its value is in the word.
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

}  // namespace hv::launcher
