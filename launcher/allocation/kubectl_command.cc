// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/kubectl_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Options whose value is a word of its own unless written with '='; of `kubectl options` and of
// `kubectl exec`.
constexpr std::array<std::string_view, 27> kWithValue{"--as",
                                                      "--as-group",
                                                      "--as-uid",
                                                      "--as-user-extra",
                                                      "--cache-dir",
                                                      "--certificate-authority",
                                                      "--client-certificate",
                                                      "--client-key",
                                                      "--cluster",
                                                      "--container",
                                                      "--context",
                                                      "--kubeconfig",
                                                      "--kuberc",
                                                      "--log-flush-frequency",
                                                      "--namespace",
                                                      "--password",
                                                      "--pod-running-timeout",
                                                      "--profile",
                                                      "--profile-output",
                                                      "--request-timeout",
                                                      "--server",
                                                      "--tls-server-name",
                                                      "--token",
                                                      "--user",
                                                      "--username",
                                                      "--v",
                                                      "--vmodule"};
constexpr std::string_view kLettersWithValue = "ncsv";

[[noreturn]] void refuse(const std::string& source, const std::string& what,
                         const std::string& advice) {
  throw Error(ErrorKind::kUsage, source + ": " + what, advice);
}

bool is_true(std::string_view word, std::size_t equals) {
  return equals == std::string_view::npos || word.substr(equals + 1) == "true";
}

// Reads the words of one call; keeps the options.
class CallReader {
 public:
  CallReader(const std::vector<std::string>& words, const std::string& source)
      : words_(words), source_(source) {
    call_.command.program = words.at(0);
  }

  KubectlCall read() {
    for (at_ = 1; at_ < words_.size() && !is_over_; ++at_) {
      const std::string& word = words_[at_];
      if (word == "--") break;
      if (word.size() < 2 || word[0] != '-')
        take_operand(word);
      else if (word[1] == '-')
        take_long(word);
      else
        take_letters(word);
    }
    return std::move(call_);
  }

 private:
  void take_operand(const std::string& word) {
    if (call_.subcommand.empty()) {
      call_.subcommand = word;
      return;
    }
    call_.operands.push_back(word);
    is_over_ = call_.operands.size() == 2;  // the command, in the old form without "--"
  }

  void take_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (name == "--stdin") return;
    if (name == "--tty") {
      if (is_true(word, equals)) refuse_terminal();
      return;
    }
    if (name == "--filename") refuse_filename();
    keep(word, equals == std::string::npos &&
                   std::find(kWithValue.begin(), kWithValue.end(), name) != kWithValue.end());
  }

  // "-i", "-iq", "-nJOBS", "-n JOBS", "-iq=false".
  void take_letters(const std::string& word) {
    std::string kept = "-";
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char letter = word[i];
      // No option of kubectl's, which says so itself.
      if (std::isalpha(static_cast<unsigned char>(letter)) == 0) return keep(word, false);
      if (kLettersWithValue.find(letter) != std::string_view::npos) {
        keep(kept + word.substr(i), i + 1 == word.size());
        return;
      }
      const std::size_t equals =
          i + 1 < word.size() && word[i + 1] == '=' ? i + 1 : std::string::npos;
      if (letter == 't' && is_true(word, equals)) refuse_terminal();
      if (letter == 'f') refuse_filename();
      if (letter != 'i' && letter != 't')
        kept += equals == std::string::npos ? std::string(1, letter) : word.substr(i);
      if (equals != std::string::npos) break;
    }
    if (kept.size() > 1) keep(kept, false);
  }

  void keep(const std::string& word, bool has_value) {
    call_.command.options.push_back(word);
    if (!has_value) return;
    if (at_ + 1 >= words_.size() || words_[at_ + 1] == "--")
      refuse(source_, printable(word) + " of kubectl lacks its value",
             "write it behind: " + printable(word) + " VALUE");
    call_.command.options.push_back(words_[++at_]);
  }

  [[noreturn]] void refuse_terminal() const {
    refuse(source_,
           "kubectl exec -t gives a terminal, which would change what hvrun and its agent say",
           "leave -t (--tty) out: kubectl exec -i");
  }
  [[noreturn]] void refuse_filename() const {
    refuse(source_, "kubectl exec -f takes the pod from a file, and hvrun names the pod",
           "leave -f (--filename) out");
  }

  const std::vector<std::string>& words_;
  const std::string& source_;
  KubectlCall call_;
  std::size_t at_ = 1;
  bool is_over_ = false;
};

}  // namespace

bool is_kubectl(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  return name == "kubectl" || name == "oc";
}

KubectlCall parse_kubectl_call(const std::vector<std::string>& words, const std::string& source) {
  return CallReader(words, source).read();
}

KubectlCommand parse_kubectl_command(const std::vector<std::string>& words,
                                     const std::string& source) {
  KubectlCall call = parse_kubectl_call(words, source);
  const std::string form = "write it as 'kubectl exec -i [--namespace=NAME] [--container=NAME]'";
  if (call.subcommand != "exec")
    refuse(source,
           call.subcommand.empty()
               ? "it is kubectl without exec"
               : "kubectl " + printable(call.subcommand) + " does not run commands in pods",
           form);
  if (!call.operands.empty() || std::find(words.begin(), words.end(), "--") != words.end())
    refuse(source,
           "kubectl exec has more than options" +
               (call.operands.empty() ? "" : ": '" + printable(call.operands[0]) + "'"),
           form + ": the pod's name and the command are hvrun's to add");
  return std::move(call.command);
}

std::vector<std::string> exec_words(const KubectlCommand& command, const std::string& pod) {
  std::vector<std::string> words{command.program, "exec", "-i"};
  words.insert(words.end(), command.options.begin(), command.options.end());
  words.insert(words.end(), {pod, "--"});
  return words;
}

std::vector<std::string> termination_period_words(const KubectlCommand& command,
                                                  const std::vector<std::string>& pods) {
  std::vector<std::string> words{command.program, "get"};
  for (std::size_t i = 0; i < command.options.size(); ++i) {
    const std::string& word = command.options[i];
    const std::string name = word.substr(0, word.find('='));
    const bool names_container = name == "-c" || name == "--container";
    if (names_container || name == "--pod-running-timeout") {
      if (name == word) ++i;  // the value is the next word
    } else if (name != "-q" && name != "--quiet" && !word.starts_with("-c")) {
      words.push_back(word);
    }
  }
  words.insert(words.end(), {"--no-headers", "--output",
                             "custom-columns=:.spec.terminationGracePeriodSeconds", "pod"});
  words.insert(words.end(), pods.begin(), pods.end());
  return words;
}

std::optional<std::chrono::seconds> shortest_termination_period(std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t{24} * 3600;
  std::optional<std::chrono::seconds> shortest;
  for (const std::string& line : split(text, '\n')) {
    const auto seconds = parse_integer(trim(line));
    if (!seconds || *seconds < 0) continue;
    const std::chrono::seconds period(std::min(*seconds, kMost));
    shortest = shortest ? std::min(*shortest, period) : period;
  }
  return shortest;
}

}  // namespace hv::launcher
