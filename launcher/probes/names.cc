// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/names.h"

#include <algorithm>
#include <sstream>

#include "launcher/facts/program_file.h"
#include "launcher/facts/read_file.h"
#include "launcher/probes/program.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

constexpr int kUnknownName = 2;  // getent's exit code

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream stream{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

// Returns why there is no answer; empty: *facts has the addresses.
std::string resolve_name(const std::string& getent, TimePoint until, wire::NameFacts* facts) {
  Command command;
  command.program = getent;
  command.argv = {"getent", "ahosts", facts->name};
  command.environment = {std::string("PATH=") + kDefaultPath};
  const Captured captured = capture_output(command, until - now());
  if (!captured.trouble.empty()) return "getent ahosts " + facts->name + ": " + captured.trouble;
  if (!captured.is_well() && captured.status->shell_code() != kUnknownName)
    return "getent ahosts " + facts->name + ": " + captured.status->text();
  facts->addresses = parse_getent(captured.text);
  return "";
}

}  // namespace

std::vector<std::string> parse_getent(std::string_view output) {
  std::vector<std::string> addresses;
  for (const std::string& line : split(output, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (!words.empty() &&
        std::find(addresses.begin(), addresses.end(), words[0]) == addresses.end())
      addresses.push_back(words[0]);
  }
  return addresses;
}

std::string line_of_hosts_file(std::string_view content, std::string_view name) {
  const std::vector<std::string> lines = split(content, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> words = words_of(lines[i].substr(0, lines[i].find('#')));
    const auto is_name = [&name](const std::string& word) { return lower(word) == lower(name); };
    if (words.empty() || std::none_of(words.begin() + 1, words.end(), is_name)) continue;
    return "line " + std::to_string(i + 1) + ": " + printable(join(words, " "));
  }
  return "";
}

void inspect_names(const wire::CheckRequest& request, const Environment&, wire::CheckReply* reply) {
  const TimePoint until = end_of_probe(request);
  std::string reason;
  const std::string getent = find_program("getent", kDefaultPath, "/", &reason);
  if (getent.empty()) {
    reply->unanswered.push_back({"names", "find getent: " + reason});
    return;
  }
  std::vector<std::string> names{own_hostname()};
  names.insert(names.end(), request.names.begin(), request.names.end());
  const std::string hosts_file = read_file("/etc/hosts").value_or("");
  for (const std::string& name : names) {
    wire::NameFacts facts{name, {}, line_of_hosts_file(hosts_file, name)};
    if (const std::string problem = resolve_name(getent, until, &facts); !problem.empty()) {
      reply->unanswered.push_back({"names", problem});
      return;
    }
    reply->names.push_back(std::move(facts));
  }
}

}  // namespace hv::launcher
