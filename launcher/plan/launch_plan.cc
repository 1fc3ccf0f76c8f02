// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/launch_plan.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/error.h"

namespace hv::launcher {
namespace {

std::vector<PlannedHost> hosts_with_slots(const HostList& list,
                                          const std::vector<std::optional<HostFacts>>& facts) {
  if (list.this_machine) {
    const HostFacts here = facts.at(0).value_or(HostFacts{});
    return {{"localhost", "", std::max(here.gpus, here.usable_cores), false, 0, true}};
  }
  std::vector<PlannedHost> hosts;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    const HostEntry& entry = list.entries[i];
    const std::optional<HostFacts>& known = facts.at(i);
    PlannedHost host{entry.name, entry.user, 1, false, 0, false};
    if (entry.slots) {
      host.slots = *entry.slots;
    } else if (known) {
      host.slots = std::max(known->gpus, 1);
    } else {
      host.slots_assumed = true;
    }
    hosts.push_back(host);
  }
  return hosts;
}

std::string list_of_slots(const std::vector<PlannedHost>& hosts, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size() && i < 8; ++i) {
    text += (i ? between : "") + hosts[i].name + ":" + std::to_string(hosts[i].slots);
  }
  return hosts.size() > 8 ? text + between + "..." : text;
}

// The same hosts with as many slots each as so many ranks take: "node1:4,node2:4".
std::string list_with_room(std::vector<PlannedHost> hosts, long ranks) {
  const long each = (ranks + static_cast<long>(hosts.size()) - 1) / static_cast<long>(hosts.size());
  for (PlannedHost& host : hosts) host.slots = std::max(host.slots, static_cast<int>(each));
  return list_of_slots(hosts, ",");
}

// How many ranks the job has; errors and warnings about the number of slots.
int count_ranks(const JobSpec& spec, const HostList& list, const std::vector<PlannedHost>& hosts,
                std::vector<std::string>* warnings) {
  long slots = 0;
  for (const PlannedHost& host : hosts) slots += host.slots;
  const long ranks = spec.ranks.value_or(static_cast<int>(std::min<long>(slots, kMostRanks)));
  if (ranks <= slots) return static_cast<int>(ranks);
  if (list.this_machine) {
    warnings->push_back(std::to_string(ranks) + " ranks share the " + std::to_string(slots) +
                        (slots == 1 ? " core" : " cores or GPUs") + " of this machine");
    return static_cast<int>(ranks);
  }
  throw Error(
      ErrorKind::kUsage,
      "-np " + std::to_string(ranks) + " asks for " + std::to_string(ranks) +
          " ranks, but the hosts have " + std::to_string(slots) +
          (slots == 1 ? " slot" : " slots") + " in all (" + list_of_slots(hosts, ", ") + ")",
      "name more hosts, state more slots (-H " + list_with_room(hosts, ranks) + "), or lower -np");
}

void place_ranks(int ranks, std::vector<PlannedHost> hosts, LaunchPlan* plan) {
  for (PlannedHost& host : hosts) {
    const int placed = static_cast<int>(plan->ranks.size());
    const bool takes_rest = host.is_this_machine;  // more ranks than slots are allowed only there
    host.ranks = takes_rest ? ranks : std::min(host.slots, ranks - placed);
    if (host.ranks == 0) break;
    for (int local = 0; local < host.ranks; ++local) {
      PlannedRank rank;
      rank.identity.rank = placed + local;
      rank.identity.size = ranks;
      rank.identity.local_rank = local;
      rank.identity.local_size = host.ranks;
      rank.host = static_cast<int>(plan->hosts.size());
      plan->ranks.push_back(rank);
    }
    plan->hosts.push_back(host);
  }
  HV_CHECK(static_cast<int>(plan->ranks.size()) == ranks, "every rank has a place");
}

// Cross rank: the index of a rank's host among the hosts that have its local rank.
void number_across_hosts(LaunchPlan* plan) {
  std::vector<int> hosts_with_local_rank;
  for (const PlannedHost& host : plan->hosts) {
    if (static_cast<int>(hosts_with_local_rank.size()) < host.ranks) {
      hosts_with_local_rank.resize(static_cast<std::size_t>(host.ranks), 0);
    }
  }
  for (PlannedRank& rank : plan->ranks) {
    rank.identity.cross_rank =
        hosts_with_local_rank[static_cast<std::size_t>(rank.identity.local_rank)]++;
  }
  for (PlannedRank& rank : plan->ranks) {
    rank.identity.cross_size =
        hosts_with_local_rank[static_cast<std::size_t>(rank.identity.local_rank)];
  }
}

void assign_gpus(const std::vector<std::optional<HostFacts>>& facts, LaunchPlan* plan) {
  for (PlannedRank& rank : plan->ranks) {
    // Hosts with ranks are the first of the list, in its order.
    const auto& known = facts.at(static_cast<std::size_t>(rank.host));
    if (known && rank.identity.local_rank < known->gpus) rank.gpu = rank.identity.local_rank;
  }
}

}  // namespace

LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts) {
  LaunchPlan plan;
  const std::vector<PlannedHost> hosts = hosts_with_slots(list, facts);
  place_ranks(count_ranks(spec, list, hosts, &plan.warnings), hosts, &plan);
  number_across_hosts(&plan);
  assign_gpus(facts, &plan);
  return plan;
}

std::size_t hosts_needed(const JobSpec& spec, const HostList& list) {
  if (list.this_machine) return 1;
  if (!spec.ranks) return list.entries.size();
  long slots = 0;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    if (slots >= *spec.ranks) return i;
    slots += list.entries[i].slots.value_or(1);
  }
  return list.entries.size();
}

}  // namespace hv::launcher
