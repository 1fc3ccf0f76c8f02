// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/rsh_script.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// In words: what stands for the script's first argument, and for what only running it would tell.
constexpr char kPod = '\1';
constexpr char kUnknown = '\2';
// A word does not grow beyond this by what its variables hold.
constexpr std::size_t kMostExpanded = 4096;

[[noreturn]] void not_understood(const std::string& source, const std::string& what) {
  throw Error(
      ErrorKind::kUsage,
      source + ": " + what +
          "; looked for is a call 'kubectl exec [options] POD -- /bin/sh -c COMMAND', where "
          "POD is the script's first argument",
      "say yourself how pods are reached: --rsh 'kubectl exec -i --container=NAME'");
}

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The name in "NAME=...", or nothing.
std::string assigned_name(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 ||
      std::isdigit(static_cast<unsigned char>(word[0])))
    return "";
  const std::string name = word.substr(0, equals);
  return std::all_of(name.begin(), name.end(), is_name_char) ? name : "";
}

// Words of simple commands, one command after the other.
class ScriptReader {
 public:
  ScriptReader(std::string_view text, const Environment& environment)
      : text_(text), environment_(environment) {}

  // Empty: a blank line or the like. None: the script is over.
  std::optional<std::vector<std::string>> next_command() {
    if (at_ >= text_.size()) return std::nullopt;
    words_.clear();
    begin_word();
    while (at_ < text_.size() && step()) {
    }
    end_word();
    assign_variables();
    return words_;
  }

  std::string value_of(const std::string& name) const {
    if (const auto found = variables_.find(name); found != variables_.end()) return found->second;
    return environment_.get(name).value_or("");
  }

 private:
  // One character or quotation; false: the command is over.
  bool step() {
    const char c = text_[at_++];
    if (c == '\\') {
      take_escaped();
    } else if (c == '\'') {
      const std::size_t end = std::min(text_.find('\'', at_), text_.size());
      add(text_.substr(at_, end - at_));
      at_ = std::min(end + 1, text_.size());
    } else if (c == '"') {
      take_quoted();
    } else if (c == '$' || c == '`') {
      expand_unquoted(c);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else if (c == '<' || c == '>') {
      take_redirection();
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == '(' || c == ')') {
      return false;
    } else {
      add({&c, 1});
    }
    return true;
  }

  void take_escaped() {
    if (at_ >= text_.size()) return;
    if (text_[at_] != '\n') add(text_.substr(at_, 1));
    ++at_;
  }

  void take_quoted() {
    in_word_ = true;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (c == '\\')
        take_escaped();
      else if (c == '$' || c == '`')
        expand(c);
      else
        add({&c, 1});
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // "2>&1", ">file", "< /dev/null": neither number nor target is a word of the command.
  void take_redirection() {
    if (std::all_of(word_.begin(), word_.end(), [](char c) { return c >= '0' && c <= '9'; }))
      begin_word();
    end_word();
    while (at_ < text_.size() && std::string_view("<>&").find(text_[at_]) != std::string_view::npos)
      ++at_;
    is_target_ = true;
  }

  void expand(char mark) {
    in_word_ = true;
    if (mark == '`') {
      at_ = std::min(text_.find('`', at_), text_.size() - 1) + 1;
      return add({&kUnknown, 1});
    }
    if (at_ < text_.size() && text_[at_] == '(') return skip_substitution();
    if (at_ < text_.size() && text_[at_] == '{') {
      const std::size_t end = std::min(text_.find('}', at_), text_.size());
      const std::string inside(text_.substr(at_ + 1, end - at_ - 1));
      at_ = std::min(end + 1, text_.size());
      return add(braced(inside));
    }
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    // $1 and $* are one character; "$" alone is itself.
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_])))
      end = std::min(at_ + 1, text_.size());
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    add(plain(name));
  }

  // Without quotes blanks in a value part words, which nobody here follows, and nothing is no word.
  void expand_unquoted(char mark) {
    const bool was_in_word = in_word_;
    const std::size_t before = word_.size();
    expand(mark);
    if (word_.find_first_of(" \t\n", before) != std::string::npos)
      word_.replace(before, std::string::npos, 1, kUnknown);
    if (word_.size() == before) in_word_ = was_in_word;
  }

  void skip_substitution() {
    int depth = 0;
    do {
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    add({&kUnknown, 1});
  }

  std::string plain(const std::string& name) const {
    if (name == "1") return {kPod};
    if (name.empty() || !is_name_char(name[0]) || std::isdigit(static_cast<unsigned char>(name[0])))
      return {kUnknown};
    return value_of(name);
  }

  // NAME, NAME:-text, NAME-text.
  std::string braced(const std::string& inside) const {
    const auto end = std::find_if_not(inside.begin(), inside.end(), is_name_char);
    const std::string name(inside.begin(), end);
    if (end == inside.end()) return plain(name);
    std::string other(end, inside.end());
    if (other.rfind(":-", 0) == 0 || other.rfind('-', 0) == 0) {
      const std::string value = plain(name);
      other.erase(0, other[0] == ':' ? 2 : 1);
      if (!value.empty()) return value;
      if (other.find_first_of("$`\"'\\") == std::string::npos) return other;
    }
    return {kUnknown};
  }

  void add(std::string_view text) {
    in_word_ = true;
    if (text.size() > 1 && word_.size() + text.size() > kMostExpanded) text = {&kUnknown, 1};
    word_ += text;
  }

  void begin_word() {
    word_.clear();
    in_word_ = is_target_ = false;
  }

  void end_word() {
    if (in_word_ && !is_target_) words_.push_back(word_);
    if (in_word_) begin_word();
  }

  // "A=1 B=2", also behind export, and before a command.
  void assign_variables() {
    static const std::vector<std::string> kDeclare{"export", "local", "readonly", "declare"};
    std::size_t first = skip_keywords();
    const auto is_declared = [&](std::size_t i) {
      return std::find(kDeclare.begin(), kDeclare.end(), words_[i]) != kDeclare.end();
    };
    if (first < words_.size() && is_declared(first)) ++first;
    for (std::size_t i = first; i < words_.size(); ++i) {
      const std::string name = assigned_name(words_[i]);
      if (name.empty()) break;
      const std::string value = words_[i].substr(name.size() + 1);
      const auto [found, is_new] = variables_.emplace(name, value);
      // Which branch the script takes nobody knows here.
      if (is_new ? depth_ > 0 : found->second != value) found->second = kUnknown;
    }
  }

  // "if", "then" and so on at a command's beginning.
  std::size_t skip_keywords() {
    static const std::vector<std::string> kOpen{"if", "while", "until", "for", "case"},
        kClose{"fi", "done", "esac"}, kBetween{"then", "else", "elif", "do", "!"};
    const auto is_one_of = [](const std::vector<std::string>& words, const std::string& word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    std::size_t first = 0;
    for (; first < words_.size(); ++first) {
      if (is_one_of(kOpen, words_[first]))
        ++depth_;
      else if (is_one_of(kClose, words_[first]))
        depth_ = std::max(depth_ - 1, 0);
      else if (!is_one_of(kBetween, words_[first]))
        break;
    }
    return first;
  }

  std::string_view text_;
  const Environment& environment_;
  std::map<std::string, std::string> variables_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
  bool is_target_ = false;  // the next word is a redirection's
  int depth_ = 0;           // of "if", "while" and the like
};

// Without what may stand before a program's name.
std::vector<std::string> from_program(std::vector<std::string> words) {
  static const std::vector<std::string> kBefore{"if",    "then",  "else", "elif",    "while",
                                                "until", "do",    "exec", "command", "!",
                                                "{",     "nohup", "time", "builtin"};
  const auto program = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return assigned_name(word).empty() &&
           std::find(kBefore.begin(), kBefore.end(), word) == kBefore.end();
  });
  words.erase(words.begin(), program);
  return words;
}

bool is_plain(const std::string& word) {
  return word.find(kPod) == std::string::npos && word.find(kUnknown) == std::string::npos;
}

// Of one call of `kubectl exec`.
KubectlCommand understood(const KubectlCall& call, const std::string& source) {
  if (!is_plain(call.command.program))
    not_understood(source, "where its kubectl lies is not understood");
  for (const std::string& option : call.command.options)
    if (!is_plain(option))
      not_understood(source,
                     "an option of its kubectl exec is not understood: what a variable or "
                     "a command gives there is not known here");
  if (call.operands.empty() || call.operands[0] != std::string(1, kPod))
    not_understood(source, "the pod that its kubectl exec names is not understood");
  return call.command;
}

// The kubectl exec that a command calls; none: it calls something else.
std::optional<KubectlCommand> command_in(const std::vector<std::string>& words,
                                         const std::string& source) {
  if (words.empty() || !is_kubectl(words[0])) return std::nullopt;
  if (std::find(words.begin(), words.end(), "exec") == words.end()) return std::nullopt;
  const KubectlCall call = parse_kubectl_call(words, source);
  if (call.subcommand != "exec") return std::nullopt;
  return understood(call, source);
}

}  // namespace

KubectlCommand kubectl_in_script(std::string_view script, const std::string& source,
                                 const Environment& environment) {
  if (script.size() > kMostScriptBytes)
    not_understood(source, "it has more than " + format_bytes(kMostScriptBytes));
  ScriptReader reader(script, environment);
  std::optional<KubectlCommand> found;
  std::optional<Error> refusal;
  while (const auto words = reader.next_command()) {
    std::optional<KubectlCommand> command;
    try {
      command = command_in(from_program(*words), source);
    } catch (const Error& error) {
      if (!refusal) refusal.emplace(error);
    }
    if (command && found && !(*command == *found))
      not_understood(source, "it calls kubectl exec in several ways");
    if (command) found = std::move(command);
  }
  if (!found && refusal) throw Error(*refusal);
  if (!found) not_understood(source, "it does not call kubectl");
  const std::string configuration = reader.value_of("KUBECONFIG");
  if (configuration.find(kUnknown) != std::string::npos)
    not_understood(source, "it sets KUBECONFIG in a way that is not followed");
  if (environment.get_or("KUBECONFIG", "") != configuration && is_plain(configuration))
    found->options.insert(found->options.begin(), "--kubeconfig=" + configuration);
  return *found;
}

}  // namespace hv::launcher
