// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/gpus/rank_gpus.h"

#include <algorithm>
#include <set>

#include "launcher/check/groups.h"
#include "launcher/plan/gpu_inventory.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostFacts = 4;  // of one host

const wire::Inventory* told_by(const CheckedHost& host) {
  return host.inventory ? inventory_of_gpus(*host.inventory) : nullptr;
}

// All of a host's devices, as the plan has seen them.
std::vector<RankGpu> devices_of(const CheckInput& input, std::size_t host) {
  std::vector<RankGpu> devices;
  if (!input.is_reached(host)) return devices;
  const wire::Inventory* const inventory = told_by(input.hosts[host]);
  const std::vector<GpuFacts> gpus = host_facts(*input.hosts[host].facts, inventory).gpus;
  const std::vector<int> numbers = gpu_numbers(gpus);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RankGpu device{host, static_cast<int>(i), numbers[i], gpus[i]};
    device.inventory = inventory;
    for (std::size_t j = 0; inventory != nullptr && j < inventory->gpus.size(); ++j) {
      const wire::InventoryGpu& told = inventory->gpus[j];
      if (told.pci_address != gpus[i].pci_address) continue;
      device.told = &told;
      for (const wire::MigDevice& mig : told.mig)
        if (gpus[i].is_mig && mig.uuid == gpus[i].uuid) device.part = &mig;
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

bool has_rank_without_gpu(const CheckInput& input, std::size_t host) {
  return std::any_of(input.plan.ranks.begin(), input.plan.ranks.end(), [host](const auto& rank) {
    return static_cast<std::size_t>(rank.host) == host && rank.gpus.empty();
  });
}

// The devices with a fault that a host's ranks have, which a launch that asked no driver could not
// know, or would have if there were none: hvrun takes them in order, unless somebody names them.
// With another order (NUMA nodes in turn) only a host whose healthy devices are all in use misses
// one.
std::vector<RankGpu> missed_of(const CheckInput& input, std::size_t host,
                               const std::set<int>& used) {
  std::vector<RankGpu> faulty;
  std::vector<int> healthy;
  for (RankGpu& device : devices_of(input, host))
    if (device.facts.fault.empty()) {
      healthy.push_back(device.place);
    } else {
      faulty.push_back(std::move(device));
    }
  if (input.plan_problem) return faulty;
  const bool are_chosen = !input.hosts[host].has_named_gpus && !used.empty();
  const bool are_all_used = used.size() == healthy.size();
  const bool are_in_order =
      used.size() <= healthy.size() && std::equal(used.begin(), used.end(), healthy.begin());
  const bool are_wanted = are_all_used && (!input.spec.ranks || has_rank_without_gpu(input, host));
  std::erase_if(faulty, [&](const RankGpu& device) {
    if (used.count(device.place) > 0) return false;
    return !are_chosen || (!are_wanted && !(are_in_order && device.place < *used.rbegin()));
  });
  return faulty;
}

}  // namespace

std::string RankGpu::name() const {
  return "GPU " + std::to_string(number) + (facts.is_mig ? " (" + printable(facts.uuid) + ")" : "");
}

const wire::GpuUse* RankGpu::use() const {
  if (told == nullptr) return nullptr;
  if (!facts.is_mig) return &told->use;
  return part == nullptr ? nullptr : &part->use;
}

std::vector<RankGpu> gpus_of_ranks(const CheckInput& input) {
  std::vector<std::map<int, std::vector<int>>> ranks_of(input.hosts.size());
  for (const PlannedRank& rank : input.plan.ranks)
    for (const int gpu : rank.gpus)
      ranks_of.at(static_cast<std::size_t>(rank.host))[gpu].push_back(rank.identity.rank);
  std::vector<RankGpu> gpus;
  for (std::size_t host = 0; host < ranks_of.size(); ++host) {
    if (ranks_of[host].empty()) continue;
    for (RankGpu& device : devices_of(input, host)) {
      const auto its = ranks_of[host].find(device.place);
      if (its == ranks_of[host].end()) continue;
      device.ranks = its->second;
      gpus.push_back(std::move(device));
    }
  }
  return gpus;
}

std::vector<RankGpu> missed_gpus(const CheckInput& input) {
  std::vector<std::set<int>> used(input.hosts.size());
  for (const PlannedRank& rank : input.plan.ranks)
    used.at(static_cast<std::size_t>(rank.host)).insert(rank.gpus.begin(), rank.gpus.end());
  std::vector<RankGpu> missed;
  for (std::size_t host = 0; host < input.hosts.size(); ++host) {
    const std::vector<RankGpu> its = missed_of(input, host, used[host]);
    missed.insert(missed.end(), its.begin(), its.end());
  }
  return missed;
}

std::vector<std::size_t> hosts_with_gpus(const CheckInput& input) {
  std::set<std::size_t> hosts;
  for (const PlannedRank& rank : input.plan.ranks)
    if (!rank.gpus.empty() && input.is_reached(static_cast<std::size_t>(rank.host)))
      hosts.insert(static_cast<std::size_t>(rank.host));
  return {hosts.begin(), hosts.end()};
}

void GpuFindings::tell(const std::string& verdict, Judgement* judgement) const {
  if (facts_.empty()) return;
  std::vector<std::string> hosts;
  std::vector<std::pair<std::string, std::string>> by_host;
  for (const auto& [host, facts] : facts_) {
    std::vector<std::string> told(
        facts.begin(),
        facts.begin() + static_cast<std::ptrdiff_t>(std::min(facts.size(), kMostFacts)));
    if (facts.size() > kMostFacts)
      told.push_back(std::to_string(facts.size() - kMostFacts) + " more");
    hosts.push_back(input_.hosts[host].name);
    by_host.emplace_back(hosts.back(), join(told, "; "));
  }
  judgement->add(verdict, hosts, groups_as_text(group_facts(by_host)), {{"GPU", address_}});
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return join(words, "");
  return join({words.begin(), words.end() - 1}, ", ") + " and " + words.back();
}

}  // namespace hv::launcher
