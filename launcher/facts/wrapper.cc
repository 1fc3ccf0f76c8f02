// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/wrapper.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {
namespace {

struct Wrapper {
  std::string_view name;
  std::string_view flags;   // option letters without a value
  std::string_view values;  // option letters with a value, in the same word or the next one
  std::vector<std::string_view> long_flags{};
  std::vector<std::string_view> long_values{};  // value after '=', or in the next word
  int operands = 0;                             // words between the options and the program
};

// From the manuals of coreutils, util-linux and numactl.
const std::vector<Wrapper>& wrappers() {
  static const std::vector<Wrapper> all{
      {"env", "", "", {}, {}, 0},
      {"nice", "", "n", {}, {"adjustment"}, 0},
      {"nohup", "", "", {}, {}, 0},
      {"setsid", "cfw", "", {"ctty", "fork", "wait"}, {}, 0},
      {"stdbuf", "", "ioe", {}, {"input", "output", "error"}, 0},
      {"taskset", "ac", "", {"all-tasks", "cpu-list"}, {}, 1},
      {"timeout",
       "v",
       "ks",
       {"foreground", "preserve-status", "verbose"},
       {"kill-after", "signal"},
       1},
      {"ionice", "t", "cn", {"ignore"}, {"class", "classdata"}, 0},
      {"numactl",
       "al",
       "CNPimpw",
       {"all", "localalloc", "balancing"},
       {"cpunodebind", "physcpubind", "interleave", "membind", "preferred", "preferred-many",
        "weighted-interleave"},
       0}};
  return all;
}

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// How many words the option takes up, its value included; 0: an unknown option.
std::size_t words_of_option(const Wrapper& wrapper, std::string_view word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const std::string_view name =
        word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    if (equals != std::string_view::npos) return has(wrapper.long_values, name) ? 1 : 0;
    if (has(wrapper.long_flags, name)) return 1;
    return has(wrapper.long_values, name) ? 2 : 0;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (wrapper.values.find(word[i]) != std::string_view::npos) return i + 1 == word.size() ? 2 : 1;
    if (wrapper.flags.find(word[i]) == std::string_view::npos) return 0;
  }
  return 1;
}

}  // namespace

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<wire::Program> wrapped_program(const wire::Program& program) {
  if (program.argv.empty()) return std::nullopt;
  const std::string name = base_name(program.argv[0]);
  const auto wrapper = std::find_if(wrappers().begin(), wrappers().end(),
                                    [&name](const Wrapper& each) { return each.name == name; });
  if (wrapper == wrappers().end()) return std::nullopt;
  wire::Program inner = program;
  std::size_t at = 1;
  while (at < program.argv.size() && program.argv[at].size() > 1 && program.argv[at][0] == '-') {
    if (program.argv[at] == "--") {
      ++at;
      break;
    }
    const std::size_t words = words_of_option(*wrapper, program.argv[at]);
    if (words == 0) return std::nullopt;
    at += words;
  }
  at += static_cast<std::size_t>(wrapper->operands);
  for (; name == "env" && at < program.argv.size() && split_variable(program.argv[at]); ++at)
    inner.environment.push_back(program.argv[at]);
  if (at >= program.argv.size()) return std::nullopt;
  inner.argv.erase(inner.argv.begin(), inner.argv.begin() + static_cast<std::ptrdiff_t>(at));
  return inner;
}

bool is_python_name(const std::string& file) {
  const std::string name = base_name(file);
  for (const std::string_view word : {"python", "pypy"})
    if (name.rfind(word, 0) == 0)
      return name.find_first_not_of("0123456789.", word.size()) == std::string::npos;
  return false;
}

PythonTarget python_target(const std::vector<std::string>& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word.empty() || word == "-") return {};
    if (word[0] != '-') return {word, "", i + 1};
    if (word == "--check-hash-based-pycs") ++i;
    if (word.starts_with("--")) continue;
    // A word of option letters. The value of -c, -m, -W and -X is the rest of the word, or the next
    // word.
    const std::size_t letter = word.find_first_of("cmWX");
    if (letter == std::string::npos) continue;
    if (word[letter] == 'c') return {};
    const bool is_next = letter + 1 == word.size();
    if (is_next) ++i;
    if (word[letter] != 'm') continue;
    if (i >= argv.size()) return {};
    return {"", is_next ? argv[i] : word.substr(letter + 1), i + 1};
  }
  return {};
}

}  // namespace hv::launcher
