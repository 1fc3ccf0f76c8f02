// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_failures.h"

#include <cctype>
#include <regex>
#include <utility>

#include "launcher/allocation/host_names.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Placeholders for the host's name and for an address. No message has these bytes: printable()
// escapes them.
constexpr char kName = '\x01', kAddress = '\x02';

bool may_be_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// text[begin, end) is a whole name, not a part of a longer one ("n1" of "n1.lab").
bool is_whole_name(const std::string& text, std::size_t begin, std::size_t end) {
  if (begin > 0 && (may_be_in_name(text[begin - 1]) || text[begin - 1] == '.')) return false;
  if (end >= text.size()) return true;
  const bool continues = text[end] == '.' && end + 1 < text.size() && may_be_in_name(text[end + 1]);
  return !may_be_in_name(text[end]) && !continues;
}

std::string without_name(const std::string& text, const std::string& host) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = 0; !host.empty() && (at = text.find(host, at)) != std::string::npos;) {
    const std::size_t end = at + host.size();
    if (is_whole_name(text, at, end)) {
      result += text.substr(done, at - done) + kName;
      done = end;
    }
    at = end;
  }
  return result + text.substr(done);
}

std::string without_addresses(const std::string& text) {
  static const std::regex address(
      R"(\[[0-9a-fA-F:.]+(%\w+)?\](:\d+)?|\b\d{1,3}(\.\d{1,3}){3}(:\d+)?)");
  return std::regex_replace(text, address, std::string(1, kAddress));
}

// Equal for hosts that have the same failure.
std::string pattern_of(const HostFailure& failure) {
  return without_addresses(without_name(failure.error.what(), failure.host));
}

void replace_all(std::string* text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
    text->replace(at, from.size(), to);
}

struct FailureGroup {
  std::string pattern;
  std::vector<std::string> hosts;
  Error first;
};

// A text with "host NAME" gets all names there. Any other text stays that of the first host.
void describe(const FailureGroup& group, FoldedFailure* folded) {
  folded->text = group.first.what();
  folded->names_hosts = folded->text.find(group.hosts[0]) != std::string::npos;
  if (group.hosts.size() == 1) return;
  std::string text = group.pattern;
  replace_all(&text, std::string{kAddress, ',', ' ', kAddress}, std::string(1, kAddress));
  replace_all(&text, std::string{' ', '(', kAddress, ')'}, "");
  replace_all(&text, std::string{kAddress, ':', ' '}, "");
  const std::string named = std::string("host ") + kName;
  const std::size_t at = text.find(named);
  folded->names_hosts = at != std::string::npos && text.find(kAddress) == std::string::npos;
  if (!folded->names_hosts) return;
  text.replace(at, named.size(), named_hosts_text(group.hosts));
  replace_all(&text, std::string(1, kName), group.hosts[0]);
  folded->text = std::move(text);
}

}  // namespace

std::vector<FoldedFailure> fold_failures(const std::vector<HostFailure>& failures) {
  std::vector<FailureGroup> groups;
  for (const HostFailure& failure : failures) {
    const std::string pattern = pattern_of(failure);
    bool is_known = false;
    for (FailureGroup& group : groups) {
      is_known = group.pattern == pattern && group.first.kind() == failure.error.kind();
      if (!is_known) continue;
      group.hosts.push_back(failure.host);
      break;
    }
    if (!is_known) groups.push_back({pattern, {failure.host}, failure.error});
  }
  std::vector<FoldedFailure> folded;
  for (const FailureGroup& group : groups) {
    describe(group, &folded.emplace_back());
    folded.back().hosts = group.hosts;
    folded.back().kind = group.first.kind();
    folded.back().hint = group.first.hint();
  }
  return folded;
}

Error FoldedFailure::error() const {
  return {kind, names_hosts ? text : "on " + hosts_text(hosts) + ": " + text, hint};
}

}  // namespace hv::launcher
