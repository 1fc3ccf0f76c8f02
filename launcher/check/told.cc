// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/told.h"

namespace hv::launcher {
namespace {

const wire::UnansweredProbe* gap_of(const CheckedHost& host, const std::string& probe) {
  for (const wire::UnansweredProbe& gap : host.told->unanswered)
    if (gap.probe == probe) return &gap;
  return nullptr;
}

}  // namespace

std::vector<ToldHost> told_by(const CheckInput& input, const std::string& probe,
                              Judgement* judgement) {
  std::vector<ToldHost> hosts;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const CheckedHost& host = input.hosts[i];
    if (input.is_reached(i) && host.told && gap_of(host, probe) == nullptr)
      hosts.push_back({&host, &*host.told, input.ranks_may_run});
  }
  tell_gaps(input, probe, judgement);
  return hosts;
}

void tell_gaps(const CheckInput& input, const std::string& part, Judgement* judgement) {
  std::vector<HostFact> gaps;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const CheckedHost& host = input.hosts[i];
    const auto* gap = input.is_reached(i) && host.told ? gap_of(host, part) : nullptr;
    if (gap != nullptr) gaps.emplace_back(host.name, gap->reason);
  }
  for (const FactGroup& group : group_facts(gaps)) judgement->not_probed(group.hosts, group.fact);
}

std::vector<std::size_t> programs_on(const CheckInput& input, const CheckedHost& host) {
  std::vector<std::size_t> programs;
  for (std::size_t i = 0; i < input.spec.programs.size(); ++i) {
    const bool is_run =
        input.plan.ranks.empty() ||
        std::any_of(host.ranks.begin(), host.ranks.end(), [&input, i](int rank) {
          return static_cast<std::size_t>(
                     input.plan.ranks.at(static_cast<std::size_t>(rank)).program) == i;
        });
    if (is_run) programs.push_back(i);
  }
  return programs;
}

std::vector<std::vector<ToldProgram>> programs_by_host(const CheckInput& input,
                                                       const std::vector<ToldHost>& hosts) {
  std::vector<std::vector<ToldProgram>> programs(input.spec.programs.size());
  for (const ToldHost& host : hosts)
    for (const std::size_t program : programs_on(input, *host.host))
      if (program < host.told->programs.size())
        programs[program].push_back({host.host, &host.told->programs[program]});
  return programs;
}

std::map<std::size_t, const wire::InterfaceFacts*> interfaces_in_use(const CheckInput& input) {
  std::map<std::size_t, const wire::InterfaceFacts*> used;
  for (const PairFacts& pair : input.pairs) {
    const auto& reply = input.hosts[pair.to].told;
    if (pair.reached.empty() || !reply || used.count(pair.to) > 0) continue;
    for (const wire::InterfaceFacts& one : reply->network.interfaces)
      if (std::find(one.addresses.begin(), one.addresses.end(), pair.reached.front()) !=
          one.addresses.end())
        used.emplace(pair.to, &one);
  }
  return used;
}

void add_grouped(const std::string& verdict, const std::vector<HostFact>& facts,
                 Judgement* judgement, Fill values) {
  if (facts.empty()) return;
  std::vector<std::string> hosts;
  for (const HostFact& fact : facts)
    if (std::find(hosts.begin(), hosts.end(), fact.first) == hosts.end())
      hosts.push_back(fact.first);
  judgement->add(verdict, hosts, groups_as_text(group_facts(facts)), std::move(values));
}

}  // namespace hv::launcher
