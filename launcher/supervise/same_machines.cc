// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/same_machines.h"

#include <map>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kNamed = 8;

std::string words_for(const HostOnMachine& host) {
  return host.name + (host.origin.empty() ? "" : " (" + host.origin + ")");
}

}  // namespace

std::optional<Error> same_machines(const std::vector<HostOnMachine>& hosts) {
  std::map<std::size_t, std::vector<std::string>> machines;  // by the host that was first there
  for (const HostOnMachine& host : hosts)
    if (host.first_here) machines[*host.first_here].push_back(words_for(host));
  if (machines.empty()) return std::nullopt;
  std::vector<std::string> sentences;
  for (auto& [first, names] : machines) {
    names.insert(names.begin(), first < hosts.size() ? words_for(hosts[first]) : "another host");
    if (sentences.size() == kNamed) break;
    const std::size_t more = names.size() > kNamed ? names.size() - kNamed : 0;
    names.resize(names.size() - more);
    sentences.push_back(join(names, " and ") +
                        (more == 0 ? "" : " and " + std::to_string(more) + " more") +
                        " are one machine");
  }
  return Error(ErrorKind::kUsage, "place the ranks: " + join(sentences, "; "),
               "name each machine once, with all of its slots, or add --oversubscribe to run ranks "
               "there under each name");
}

}  // namespace hv::launcher
