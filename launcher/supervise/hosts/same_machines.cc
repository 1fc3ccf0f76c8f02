// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/same_machines.h"

#include <map>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kNamed = 8;

std::string words_for(const HostOnMachine& host) {
  return (host.user.empty() ? "" : host.user + "@") + host.name +
         (host.origin.empty() ? "" : " (" + host.origin + ")");
}

// Of two users on one machine the later one gets the earlier one's mark.
void find_two_users(std::vector<HostOnMachine>* hosts) {
  std::map<std::pair<std::string, std::uint16_t>, std::uint32_t> first_at;
  for (std::uint32_t i = 0; i < hosts->size(); ++i) {
    HostOnMachine& host = (*hosts)[i];
    const std::string& where = host.address.empty() ? host.name : host.address;
    const auto [found, is_new] = first_at.emplace(std::pair(where, host.port), i);
    const HostOnMachine& first = (*hosts)[found->second];
    if (is_new || host.first_here || host.user == first.user) continue;
    host.first_here = first.first_here.value_or(found->second);
  }
}

}  // namespace

std::optional<Error> same_machines(std::vector<HostOnMachine> hosts) {
  find_two_users(&hosts);
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
