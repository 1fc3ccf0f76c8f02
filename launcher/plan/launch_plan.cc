// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/launch_plan.h"

#include <algorithm>
#include <map>

#include "launcher/allocation/host_names.h"
#include "launcher/plan/gpu_inventory.h"
#include "launcher/plan/nested_launcher.h"
#include "launcher/plan/rank_resources.h"
#include "launcher/plan/scheduler_advice.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Slots of a host whose slots are not stated: one per --gpus-per-rank GPUs. 0: it has too few GPUs.
int slots_by_gpus(const JobSpec& spec, const std::vector<int>& gpus) {
  return static_cast<int>(gpus.size()) / spec.placement.gpus_per_rank;
}

PlannedHost host_with_slots(const JobSpec& spec, const HostEntry& entry,
                            const std::optional<HostFacts>& facts) {
  PlannedHost host{entry.name, entry.user};
  const int by_gpus = facts ? slots_by_gpus(spec, usable_gpus(entry, facts->gpus)) : 0;
  const bool has_gpus = facts && !facts->gpus.empty();
  if (spec.placement.map_by.by == MapBy::kGpu && facts) {
    host.slots = by_gpus;
  } else if (entry.slots) {
    host.slots = *entry.slots;
    host.slots_assumed = spec.placement.map_by.by == MapBy::kGpu;  // its GPUs are not known yet
  } else if (facts) {
    host.slots = has_gpus ? by_gpus : 1;  // none where all of its GPUs are excluded
  } else {
    host.slots_assumed = true;
  }
  return host;
}

// Of this machine alone, without stated slots, ranks may share the cores.
bool may_share_cores(const HostList& list) {
  return list.this_machine || list.is_this_machine_by_name;
}

// Where -np says how many ranks there are, slots are what ranks may have without a warning.
int slots_of_this_machine(const JobSpec& spec, int by_gpus, int cores) {
  const MapBy by = spec.placement.map_by.by;
  if (by == MapBy::kGpu) return by_gpus;
  const bool is_number_stated = spec.ranks || by == MapBy::kPerNode;
  return is_number_stated ? std::max(by_gpus, cores) : std::max(by_gpus, 1);
}

std::vector<PlannedHost> hosts_with_slots(const JobSpec& spec, const HostList& list,
                                          const std::vector<std::optional<HostFacts>>& facts) {
  if (may_share_cores(list)) {
    HostEntry entry;
    entry.name = "localhost";
    if (!list.this_machine) entry = list.entries.front();
    const HostFacts here = facts.at(0).value_or(HostFacts{});
    const int by_gpus = slots_by_gpus(spec, usable_gpus(entry, here.gpus));
    const bool are_all_excluded = by_gpus == 0 && !entry.without_gpus.empty() && !here.gpus.empty();
    return {{entry.name, "",
             are_all_excluded ? 0 : slots_of_this_machine(spec, by_gpus, here.usable_cores)}};
  }
  std::vector<PlannedHost> hosts;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    hosts.push_back(host_with_slots(spec, list.entries[i], facts.at(i)));
    hosts.back().entry = i;
  }
  return hosts;
}

// A host without slots gets no rank, even with --oversubscribe.
std::vector<HostCapacity> capacities_of(const HostList& list,
                                        const std::vector<PlannedHost>& hosts) {
  std::vector<HostCapacity> capacities;
  for (const PlannedHost& host : hosts) {
    capacities.push_back({host.slots, std::nullopt});
    if (!list.this_machine) capacities.back().most = list.entries[host.entry].max_slots;
    if (host.slots == 0) capacities.back().most = 0;
  }
  return capacities;
}

constexpr std::size_t kMostSlotWords = 8;

// "node[1-4]:8", "big:16": as -H takes them.
std::vector<std::string> words_of_slots(const std::vector<PlannedHost>& hosts) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < hosts.size();) {
    std::vector<std::string> names;
    const int slots = hosts[i].slots;
    for (; i < hosts.size() && hosts[i].slots == slots; ++i) names.push_back(hosts[i].name);
    for (const std::string& name : fold_each(names)) {
      const bool is_ipv6 = name.find(':') != std::string::npos;
      words.push_back((is_ipv6 ? "[" + name + "]" : name) + ":" + std::to_string(slots));
    }
  }
  return words;
}

std::string list_of_slots(const std::vector<PlannedHost>& hosts, const std::string& between) {
  std::vector<std::string> words = words_of_slots(hosts);
  if (words.size() > kMostSlotWords) {
    words.resize(kMostSlotWords);
    words.emplace_back("...");
  }
  return join(words, between);
}

// The hosts with enough slots for the ranks: "node1:4,node2:4"; "" if that is too long to type.
std::string list_with_slots_for(std::vector<PlannedHost> hosts, long ranks) {
  const long each = (ranks + static_cast<long>(hosts.size()) - 1) / static_cast<long>(hosts.size());
  for (PlannedHost& host : hosts) host.slots = std::max(host.slots, static_cast<int>(each));
  const std::vector<std::string> words = words_of_slots(hosts);
  return words.size() > kMostSlotWords ? "" : " (-H " + join(words, ",") + ")";
}

// How to get slots for the ranks from the source of the hosts.
std::string advice_on_slots(const HostList& list, const std::vector<PlannedHost>& hosts,
                            long ranks) {
  if (!list.scheduler.empty()) return request_more_slots(list.scheduler, ranks, hosts.size());
  return "name more hosts, state more slots" + list_with_slots_for(hosts, ranks);
}

std::string advice_on_hosts(const HostList& list) {
  return list.scheduler.empty() ? "name more hosts" : "request more nodes of " + list.scheduler;
}

[[noreturn]] void refuse_ranks(const JobSpec& spec, const HostList& list,
                               const std::vector<PlannedHost>& hosts, long ranks, long most) {
  const std::string asked =
      spec.ranks ? "-np " + std::to_string(ranks) + " asks for " : "the placement asks for ";
  const bool by_gpu = spec.placement.map_by.by == MapBy::kGpu;
  const bool is_all_excluded =
      most == 0 && std::any_of(list.entries.begin(), list.entries.end(),
                               [](const HostEntry& entry) { return !entry.without_gpus.empty(); });
  const std::string hint = is_all_excluded ? "exclude fewer GPUs (--exclude)"
                           : by_gpu || most == 0
                               ? advice_on_hosts(list) + ", lower -np, or leave out --map-by gpu"
                               : advice_on_slots(list, hosts, ranks) +
                                     ", lower -np, or let ranks share slots with --oversubscribe";
  if (spec.placement.map_by.by == MapBy::kPerNode && spec.ranks && most > 0) {
    const long each =
        (ranks + static_cast<long>(hosts.size()) - 1) / static_cast<long>(hosts.size());
    throw Error(ErrorKind::kUsage,
                asked + count_of(ranks, "rank") + ", but " +
                    count_of(spec.placement.map_by.per_node, "rank") +
                    " a node (--npernode, ppr) and the slots of " + count_of(hosts.size(), "host") +
                    " (" + list_of_slots(hosts, ", ") + ") allow " + std::to_string(most),
                advice_on_hosts(list) + ", take --npernode " + std::to_string(each) +
                    " where the hosts have the slots, or lower -np");
  }
  throw Error(ErrorKind::kUsage,
              asked + count_of(ranks, "rank") + ", but the hosts have " +
                  count_of(most, by_gpu ? "GPU slot" : "slot") + " in all (" +
                  list_of_slots(hosts, ", ") + ")",
              hint);
}

[[noreturn]] void refuse_oversubscription(long ranks, long most) {
  throw Error(ErrorKind::kUsage,
              count_of(ranks, "rank") + " are more than the hosts' max-slots allow, " +
                  std::to_string(most) + " in all",
              "raise max-slots in the hostfile, name more hosts, or lower -np");
}

// Number of ranks of the job. Throws Error(kUsage) where they exceed the slots.
int count_ranks(const JobSpec& spec, const HostList& list, const std::vector<PlannedHost>& hosts,
                std::vector<std::string>* warnings) {
  const std::vector<HostCapacity> capacities = capacities_of(list, hosts);
  const long slots = most_ranks(spec.placement.map_by, capacities, false);
  const long ranks =
      spec.ranks ? *spec.ranks
                 : std::min<long>(natural_ranks(spec.placement.map_by, capacities), kMostRanks);
  if (ranks <= slots && ranks > 0) return static_cast<int>(ranks);
  const long most = most_ranks(spec.placement.map_by, capacities, true);
  const bool may_share = spec.placement.oversubscribe || may_share_cores(list);
  if (!may_share || most == 0 || (ranks > most && spec.placement.map_by.by == MapBy::kPerNode))
    refuse_ranks(spec, list, hosts, std::max(ranks, 1L), slots);
  if (ranks > most) refuse_oversubscription(ranks, most);
  if (!spec.placement.oversubscribe)
    warnings->push_back(count_of(ranks, "rank") + word_for(ranks, " shares the ", " share the ") +
                        count_of(slots, "core", "cores or GPUs") + " of this machine");
  return static_cast<int>(ranks);
}

// The host of each rank by the rankfile.
std::vector<int> hosts_by_rankfile(const JobSpec& spec, const HostList& list,
                                   const std::vector<PlannedHost>& hosts) {
  const std::size_t all = list.rank_places.size();
  const std::size_t ranks = spec.ranks ? static_cast<std::size_t>(*spec.ranks) : all;
  if (ranks > all)
    throw Error(ErrorKind::kUsage,
                "-np " + std::to_string(ranks) + " asks for " + count_of(ranks, "rank") +
                    ", but the rankfile has places for " + std::to_string(all),
                "give each rank a line, or lower -np");
  std::vector<int> host_of_rank, shares(hosts.size(), 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t host = list.rank_places[rank].entry;
    host_of_rank.push_back(static_cast<int>(host));
    const HostEntry& entry = list.entries[host];
    const bool may_share = spec.placement.oversubscribe || may_share_cores(list);
    const int most = may_share ? entry.max_slots.value_or(kMostRanks) : hosts[host].slots;
    const RankPlace& place = list.rank_places[rank];
    if (++shares[host] > most)
      mistake({list.rankfile, place.line, place.text}, place.column,
              "host " + entry.name + " has " +
                  count_of(most, spec.placement.oversubscribe ? "max-slot" : "slot") + " (" +
                  entry.origin + "), and this is one rank more",
              spec.placement.oversubscribe ? "another host, or more max-slots there"
                                           : "another host, more slots there, or --oversubscribe");
  }
  return host_of_rank;
}

// The host of each rank, as an index into hosts.
std::vector<int> hosts_of_ranks(const JobSpec& spec, const HostList& list,
                                const std::vector<PlannedHost>& hosts,
                                std::vector<std::string>* warnings) {
  if (!list.rank_places.empty()) return hosts_by_rankfile(spec, list, hosts);
  const int ranks = count_ranks(spec, list, hosts, warnings);
  const bool may_share = spec.placement.oversubscribe || may_share_cores(list);
  return place_ranks(spec.placement.map_by, spec.placement.rank_by, capacities_of(list, hosts),
                     ranks, may_share);
}

// Adds the ranks, and the hosts that have any, in the order of their first rank.
void fill_plan(const std::vector<PlannedHost>& hosts, const std::vector<int>& host_of_rank,
               LaunchPlan* plan) {
  std::vector<int> place_of(hosts.size(), -1);
  for (const int number : host_of_rank) {
    const auto host = static_cast<std::size_t>(number);
    if (place_of[host] < 0) {
      place_of[host] = static_cast<int>(plan->hosts.size());
      plan->hosts.push_back(hosts[host]);
    }
    PlannedRank rank;
    rank.identity.rank = static_cast<int>(plan->ranks.size());
    rank.identity.size = static_cast<int>(host_of_rank.size());
    rank.host = place_of[host];
    rank.identity.local_rank = plan->hosts[static_cast<std::size_t>(rank.host)].ranks++;
    plan->ranks.push_back(rank);
  }
  for (PlannedRank& rank : plan->ranks)
    rank.identity.local_size = plan->hosts[static_cast<std::size_t>(rank.host)].ranks;
}

// The first program has the first ranks, and so on.
void assign_programs(const JobSpec& spec, LaunchPlan* plan) {
  if (spec.programs.size() < 2) return;
  std::size_t rank = 0;
  for (std::size_t program = 0; program < spec.programs.size(); ++program)
    for (int i = 0; i < spec.programs[program].ranks && rank < plan->ranks.size(); ++i)
      plan->ranks[rank++].program = static_cast<int>(program);
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

// Adds a line for each faulty GPU of a host; one line for all MIG devices of a GPU.
void warn_of_faults(const std::string& host, const std::vector<GpuFacts>& gpus,
                    std::vector<std::string>* warnings) {
  const std::vector<int> numbers = gpu_numbers(gpus);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].fault.empty() || (i > 0 && numbers[i] == numbers[i - 1])) continue;
    warnings->push_back(describe_gpu(gpus[i], numbers[i], host) +
                        " gets no rank: " + gpus[i].fault + "; " + gpus[i].fix);
  }
}

bool is_index(const std::string& gpu) { return parse_integer(gpu).has_value(); }

// Whether the user names some of the host's GPUs by their indices.
bool has_gpu_indices(const HostList& list, std::size_t entry) {
  const auto has_index = [](const std::vector<std::string>& gpus) {
    return std::any_of(gpus.begin(), gpus.end(), is_index);
  };
  if (list.this_machine) return false;
  const HostEntry& host = list.entries[entry];
  return !host.without_gpus.empty() || has_index(host.gpus) ||
         std::any_of(list.rank_places.begin(), list.rank_places.end(), [&](const RankPlace& place) {
           return place.entry == entry && has_index(place.gpus);
         });
}

// Empty: each slot that --exclude names is a GPU of the host.
std::string describe_unused_exclusion(const HostEntry& entry, const HostFacts& facts) {
  const std::vector<int> numbers = gpu_numbers(facts.gpus);
  std::vector<std::string> unused;
  for (const int slot : entry.without_gpus)
    if (std::find(numbers.begin(), numbers.end(), slot) == numbers.end())
      unused.push_back(std::to_string(slot));
  if (unused.empty()) return "";
  return "--exclude of " + word_for(unused.size(), "slot ", "slots ") + join(unused, ",") +
         " has no effect, because the host has " + count_of(facts.gpus.size(), "GPU");
}

// Warnings about hosts: faulty GPUs, then other warnings, each once for all hosts that have it.
std::vector<std::string> warnings_on_hosts(const HostList& list,
                                           const std::vector<std::optional<HostFacts>>& facts) {
  std::vector<std::string> distinct, warnings;
  std::map<std::string, std::vector<std::string>> hosts_of;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i]) continue;
    const std::string name = list.this_machine ? "localhost" : list.entries[i].name;
    std::vector<std::string> of_host = facts[i]->warnings;
    if (!facts[i]->visible_devices.empty() && has_gpu_indices(list, i))
      of_host.push_back("numbers of GPUs count those of CUDA_VISIBLE_DEVICES=" +
                        printable(facts[i]->visible_devices, 200) +
                        ", which is set there: 0 is the first of them");
    if (!list.this_machine)
      if (auto unused = describe_unused_exclusion(list.entries[i], *facts[i]); !unused.empty())
        of_host.push_back(std::move(unused));
    for (const std::string& warning : of_host) {
      if (hosts_of[warning].empty()) distinct.push_back(warning);
      hosts_of[warning].push_back(name);
    }
    warn_of_faults(name, facts[i]->gpus, &warnings);
  }
  for (const std::string& warning : distinct) {
    const std::vector<std::string>& names = hosts_of[warning];
    warnings.push_back(named_hosts_text(names) + ": " + warning);
  }
  return warnings;
}

std::optional<int> known_node(std::int32_t node) {
  return node == wire::kNoNode ? std::nullopt : std::optional<int>(node);
}

}  // namespace

HostFacts host_facts(const wire::Facts& reported, const wire::Inventory* inventory) {
  HostFacts facts;
  facts.usable_cores = static_cast<int>(reported.usable_cores);
  GpusOfHost gpus = gpus_of(reported, inventory);
  facts.gpus = std::move(gpus.gpus);
  facts.warnings = std::move(gpus.warnings);
  facts.visible_devices = reported.visible_devices;
  for (const wire::Core& core : reported.cores)
    facts.cores.push_back({static_cast<int>(core.node),
                           {core.threads.begin(), core.threads.end()},
                           static_cast<int>(core.package)});
  for (const wire::RdmaAdapter& adapter : reported.rdma)
    facts.rdma.push_back({adapter.name,
                          known_node(adapter.node),
                          adapter.pci_path,
                          {adapter.ports.begin(), adapter.ports.end()}});
  return facts;
}

namespace {

// option: as typed, with the highest rank that it names.
void check_named_rank(const std::string& option, int rank, const LaunchPlan& plan) {
  if (static_cast<std::size_t>(rank) < plan.ranks.size()) return;
  throw Error(ErrorKind::kUsage,
              option + " names a rank that this job does not have: its ranks are 0 to " +
                  std::to_string(plan.ranks.size() - 1),
              "name only these");
}

void check_named_ranks(const JobSpec& spec, const LaunchPlan& plan) {
  const OutputSpec& output = spec.output;
  if (output.stdin_rank)
    check_named_rank("--stdin=" + std::to_string(*output.stdin_rank), *output.stdin_rank, plan);
  if (!output.shown_ranks.empty())
    check_named_rank("--ranks " + format_ranges(output.shown_ranks), output.shown_ranks.back(),
                     plan);
}

}  // namespace

LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts) {
  LaunchPlan plan;
  plan.warnings = warnings_on_hosts(list, facts);
  const std::vector<PlannedHost> hosts = hosts_with_slots(spec, list, facts);
  fill_plan(hosts, hosts_of_ranks(spec, list, hosts, &plan.warnings), &plan);
  number_across_hosts(&plan);
  check_named_ranks(spec, plan);
  assign_programs(spec, &plan);
  check_ranks_of_launchers(spec, plan);
  assign_resources(spec, list, facts, &plan);
  warn_of_idle_gpus(spec, list, &plan);
  return plan;
}

void check_stated_slots(const JobSpec& spec, const HostList& list) {
  const bool are_all_stated =
      std::all_of(list.entries.begin(), list.entries.end(),
                  [](const HostEntry& entry) { return entry.slots.has_value(); });
  if (list.this_machine || !are_all_stated || spec.placement.map_by.by == MapBy::kGpu) return;
  const std::vector<std::optional<HostFacts>> unknown(list.entries.size());
  std::vector<std::string> warnings;
  (void)hosts_of_ranks(spec, list, hosts_with_slots(spec, list, unknown), &warnings);
}

std::size_t hosts_needed(const JobSpec& spec, const HostList& list) {
  if (list.this_machine) return 1;
  const std::size_t all = list.entries.size();
  if (!spec.ranks || spec.placement.map_by.by == MapBy::kGpu || !list.rank_places.empty())
    return all;
  const auto ranks = static_cast<std::size_t>(*spec.ranks);
  if (spec.placement.map_by.by == MapBy::kNode) return std::min(all, ranks);
  std::size_t slots = 0;
  for (std::size_t i = 0; i < all; ++i) {
    if (slots >= ranks) return i;
    const int stated = list.entries[i].slots.value_or(1);
    slots += static_cast<std::size_t>(spec.placement.map_by.by == MapBy::kPerNode
                                          ? std::min(stated, spec.placement.map_by.per_node)
                                          : stated);
  }
  return all;
}

}  // namespace hv::launcher
