// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/launch_plan.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Indices in PCI order of GPUs that are named by index or UUID. origin: who names them.
std::vector<int> find_gpus(const std::vector<std::string>& names, const HostEntry& entry,
                           const HostFacts& facts) {
  std::vector<int> gpus;
  for (const std::string& name : names) {
    const auto& uuids = facts.gpu_uuids;
    const auto found = std::find(uuids.begin(), uuids.end(), name);
    const auto index = parse_integer(name);
    if (index ? *index >= facts.gpus : found == uuids.end())
      throw Error(ErrorKind::kUsage,
                  "host " + entry.name + " has no GPU " + name + " (" + entry.origin +
                      "): there are " + std::to_string(facts.gpus) + " that this user may open",
                  "'nvidia-smi -L' there lists them; indices count from 0 in PCI order");
    gpus.push_back(index ? static_cast<int>(*index) : static_cast<int>(found - uuids.begin()));
  }
  return gpus;
}

// The GPUs of a host that its ranks may use, as indices in PCI order.
std::vector<int> usable_gpus(const HostEntry& entry, const HostFacts& facts) {
  const bool are_only_slots = entry.gpus_are_slots && facts.gpus == 0;
  if (!entry.gpus.empty() && !are_only_slots) return find_gpus(entry.gpus, entry, facts);
  std::vector<int> gpus;
  const std::vector<int>& without = entry.without_gpus;
  for (int gpu = 0; gpu < facts.gpus; ++gpu)
    if (std::find(without.begin(), without.end(), gpu) == without.end()) gpus.push_back(gpu);
  return gpus;
}

// Slots where nobody has stated them: GPUs, or for each so many of them one. 0: the host has none.
int slots_by_gpus(const JobSpec& spec, const std::vector<int>& gpus) {
  return static_cast<int>(gpus.size()) / spec.gpus_per_rank;
}

PlannedHost host_with_slots(const JobSpec& spec, const HostEntry& entry,
                            const std::optional<HostFacts>& facts) {
  PlannedHost host{entry.name, entry.user};
  const int by_gpus = facts ? slots_by_gpus(spec, usable_gpus(entry, *facts)) : 0;
  if (spec.map_by.by == MapBy::kGpu && facts) {
    host.slots = by_gpus;
  } else if (entry.slots) {
    host.slots = *entry.slots;
  } else if (facts) {
    host.slots = std::max(by_gpus, 1);
  } else {
    host.slots_assumed = true;
  }
  return host;
}

std::vector<PlannedHost> hosts_with_slots(const JobSpec& spec, const HostList& list,
                                          const std::vector<std::optional<HostFacts>>& facts) {
  if (list.this_machine) {
    const HostFacts here = facts.at(0).value_or(HostFacts{});
    const int by_gpus = here.gpus / spec.gpus_per_rank;
    const int slots =
        spec.map_by.by == MapBy::kGpu ? by_gpus : std::max(by_gpus, here.usable_cores);
    return {{"localhost", "", slots, false, 0, true}};
  }
  std::vector<PlannedHost> hosts;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    hosts.push_back(host_with_slots(spec, list.entries[i], facts.at(i)));
    hosts.back().entry = i;
  }
  return hosts;
}

std::vector<HostRoom> rooms_of(const HostList& list, const std::vector<PlannedHost>& hosts) {
  std::vector<HostRoom> rooms;
  for (const PlannedHost& host : hosts)
    rooms.push_back(
        {host.slots, list.this_machine ? std::nullopt : list.entries[host.entry].max_slots});
  return rooms;
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

std::string in_all(long count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

[[noreturn]] void refuse_ranks(const JobSpec& spec, const std::vector<PlannedHost>& hosts,
                               long ranks, long most) {
  const std::string asked =
      spec.ranks ? "-np " + std::to_string(ranks) + " asks for " : "the placement asks for ";
  const bool by_gpu = spec.map_by.by == MapBy::kGpu;
  const std::string hint = by_gpu || most == 0
                               ? "name more hosts, lower -np, or leave out --map-by gpu"
                               : "name more hosts, state more slots (-H " +
                                     list_with_room(hosts, ranks) +
                                     "), lower -np, or let ranks share slots with --oversubscribe";
  throw Error(ErrorKind::kUsage,
              asked + in_all(ranks, "rank") + ", but the hosts have " +
                  in_all(most, by_gpu ? "GPU slot" : "slot") + " in all (" +
                  list_of_slots(hosts, ", ") + ")",
              hint);
}

[[noreturn]] void refuse_oversubscription(long ranks, long most) {
  throw Error(ErrorKind::kUsage,
              in_all(ranks, "rank") + " are more than the hosts' max-slots allow, " +
                  std::to_string(most) + " in all",
              "raise max-slots in the hostfile, name more hosts, or lower -np");
}

// How many ranks the job has; errors and warnings about the number of slots.
int count_ranks(const JobSpec& spec, const HostList& list, const std::vector<PlannedHost>& hosts,
                std::vector<std::string>* warnings) {
  const std::vector<HostRoom> rooms = rooms_of(list, hosts);
  const long slots = most_ranks(spec.map_by, rooms, false);
  const long ranks =
      spec.ranks ? *spec.ranks : std::min<long>(natural_ranks(spec.map_by, rooms), kMostRanks);
  if (ranks <= slots && ranks > 0) return static_cast<int>(ranks);
  const bool needs_gpus = spec.map_by.by == MapBy::kGpu && slots == 0;
  if (list.this_machine && !needs_gpus) {
    if (!spec.oversubscribe)
      warnings->push_back(in_all(ranks, "rank") + (ranks == 1 ? " shares the " : " share the ") +
                          std::to_string(slots) + (slots == 1 ? " core" : " cores or GPUs") +
                          " of this machine");
    return static_cast<int>(ranks);
  }
  if (!spec.oversubscribe || needs_gpus) refuse_ranks(spec, hosts, std::max(ranks, 1L), slots);
  const long most = most_ranks(spec.map_by, rooms, true);
  if (ranks > most) refuse_oversubscription(ranks, most);
  return static_cast<int>(ranks);
}

// The host of each rank as the rankfile says.
std::vector<int> places_by_file(const JobSpec& spec, const HostList& list,
                                const std::vector<PlannedHost>& hosts) {
  const std::size_t all = list.rank_places.size();
  const std::size_t ranks = spec.ranks ? static_cast<std::size_t>(*spec.ranks) : all;
  if (ranks > all)
    throw Error(ErrorKind::kUsage,
                "-np " + std::to_string(ranks) + " asks for " +
                    in_all(static_cast<long>(ranks), "rank") +
                    ", but the rankfile has places for " + std::to_string(all),
                "give each rank a line, or lower -np");
  std::vector<int> host_of_rank, shares(hosts.size(), 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t host = list.rank_places[rank].entry;
    host_of_rank.push_back(static_cast<int>(host));
    const HostEntry& entry = list.entries[host];
    const int most = spec.oversubscribe ? entry.max_slots.value_or(kMostRanks) : hosts[host].slots;
    if (++shares[host] > most)
      throw Error(ErrorKind::kUsage,
                  "the rankfile puts more ranks on host " + entry.name + " than its " +
                      in_all(most, spec.oversubscribe ? "max-slot" : "slot") + " (" + entry.origin +
                      ")",
                  "state more slots there, or let ranks share them with --oversubscribe");
  }
  return host_of_rank;
}

// Those hosts that have ranks, in the list's order, and the ranks.
void fill_plan(const std::vector<PlannedHost>& hosts, const std::vector<int>& host_of_rank,
               LaunchPlan* plan) {
  std::vector<int> shares(hosts.size(), 0), places(hosts.size(), 0);
  for (const int host : host_of_rank) ++shares[static_cast<std::size_t>(host)];
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    places[i] = static_cast<int>(plan->hosts.size());
    if (shares[i] == 0) continue;
    plan->hosts.push_back(hosts[i]);
    plan->hosts.back().ranks = shares[i];
  }
  std::vector<int> placed(hosts.size(), 0);
  for (const int number : host_of_rank) {
    const auto host = static_cast<std::size_t>(number);
    PlannedRank rank;
    rank.identity.rank = static_cast<int>(plan->ranks.size());
    rank.identity.size = static_cast<int>(host_of_rank.size());
    rank.identity.local_rank = placed[host]++;
    rank.identity.local_size = shares[host];
    rank.host = places[host];
    plan->ranks.push_back(rank);
  }
}

// Cross rank: the index of a rank's host among the hosts that have its local rank.
void number_across_hosts(LaunchPlan* plan) {
  std::vector<int> hosts_with;  // by local rank
  std::vector<std::vector<int>> cross_ranks;
  for (const PlannedHost& host : plan->hosts) {
    const auto ranks = static_cast<std::size_t>(host.ranks);
    if (hosts_with.size() < ranks) hosts_with.resize(ranks, 0);
    cross_ranks.emplace_back();
    for (std::size_t local = 0; local < ranks; ++local)
      cross_ranks.back().push_back(hosts_with[local]++);
  }
  for (PlannedRank& rank : plan->ranks) {
    const auto local = static_cast<std::size_t>(rank.identity.local_rank);
    rank.identity.cross_rank = cross_ranks[static_cast<std::size_t>(rank.host)][local];
    rank.identity.cross_size = hosts_with[local];
  }
}

// A rankfile's GPUs, else the next of the host's.
void assign_gpus(const JobSpec& spec, const HostList& list,
                 const std::vector<std::optional<HostFacts>>& facts, LaunchPlan* plan) {
  const HostEntry this_machine;
  const auto entry_of = [&](const PlannedHost& host) -> const HostEntry& {
    return list.this_machine ? this_machine : list.entries[host.entry];
  };
  std::vector<std::vector<int>> gpus_of_host;
  for (const PlannedHost& host : plan->hosts) {
    const auto& known = facts.at(host.entry);
    gpus_of_host.push_back(known ? usable_gpus(entry_of(host), *known) : std::vector<int>());
  }
  for (PlannedRank& rank : plan->ranks) {
    const auto number = static_cast<std::size_t>(rank.identity.rank);
    const PlannedHost& host = plan->hosts[static_cast<std::size_t>(rank.host)];
    const bool is_placed = number < list.rank_places.size();
    if (is_placed) rank.cores = list.rank_places[number].cores;
    if (is_placed && !list.rank_places[number].gpus.empty()) {
      const auto& known = facts.at(host.entry);
      if (known) rank.gpus = find_gpus(list.rank_places[number].gpus, entry_of(host), *known);
      continue;
    }
    const std::vector<int>& gpus = gpus_of_host[static_cast<std::size_t>(rank.host)];
    const auto each = static_cast<std::size_t>(spec.gpus_per_rank);
    const std::size_t first = static_cast<std::size_t>(rank.identity.local_rank) * each;
    for (std::size_t i = first; i < first + each && i < gpus.size(); ++i)
      rank.gpus.push_back(gpus[i]);
  }
}

}  // namespace

LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts) {
  LaunchPlan plan;
  const std::vector<PlannedHost> hosts = hosts_with_slots(spec, list, facts);
  if (list.rank_places.empty()) {
    const int ranks = count_ranks(spec, list, hosts, &plan.warnings);
    const bool may_share = spec.oversubscribe || list.this_machine;
    fill_plan(hosts,
              place_ranks(spec.map_by, spec.rank_by, rooms_of(list, hosts), ranks, may_share),
              &plan);
  } else {
    fill_plan(hosts, places_by_file(spec, list, hosts), &plan);
  }
  number_across_hosts(&plan);
  assign_gpus(spec, list, facts, &plan);
  return plan;
}

void check_stated_slots(const JobSpec& spec, const HostList& list) {
  const bool are_all_stated =
      std::all_of(list.entries.begin(), list.entries.end(),
                  [](const HostEntry& entry) { return entry.slots.has_value(); });
  if (list.this_machine || !are_all_stated || spec.map_by.by == MapBy::kGpu) return;
  (void)make_plan(spec, list, std::vector<std::optional<HostFacts>>(list.entries.size()));
}

std::size_t hosts_needed(const JobSpec& spec, const HostList& list) {
  if (list.this_machine) return 1;
  const std::size_t all = list.entries.size();
  if (!spec.ranks || spec.map_by.by == MapBy::kGpu || !list.rank_places.empty()) return all;
  const auto ranks = static_cast<std::size_t>(*spec.ranks);
  if (spec.map_by.by == MapBy::kNode) return std::min(all, ranks);
  std::size_t slots = 0;
  for (std::size_t i = 0; i < all; ++i) {
    if (slots >= ranks) return i;
    const int stated = list.entries[i].slots.value_or(1);
    slots += static_cast<std::size_t>(
        spec.map_by.by == MapBy::kPerNode ? std::min(stated, spec.map_by.per_node) : stated);
  }
  return all;
}

}  // namespace hv::launcher
