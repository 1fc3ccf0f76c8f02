// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/rank_resources.h"

#include <algorithm>
#include <set>

#include "launcher/plan/socket_cores.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// The ranks of one host, by local rank, and the host's facts.
struct RanksOfHost {
  const JobSpec& spec;
  const HostList& list;
  const HostEntry& entry;
  const HostFacts* facts;  // null: not known
  std::vector<PlannedRank*> ranks{};

  // nullptr: no rankfile places this rank.
  const RankPlace* place_of(const PlannedRank& rank) const {
    const auto number = static_cast<std::size_t>(rank.identity.rank);
    return number < list.rank_places.size() ? &list.rank_places[number] : nullptr;
  }
  bool has_placed_gpus(const PlannedRank& rank) const {
    return place_of(rank) != nullptr && !place_of(rank)->gpus.empty();
  }
  const GpuFacts* gpu_of(const PlannedRank& rank) const {
    return rank.gpus.empty() ? nullptr : &facts->gpus[static_cast<std::size_t>(rank.gpus.front())];
  }
};

[[noreturn]] void refuse_gpus(const RanksOfHost& here, std::size_t gpus) {
  const auto each = static_cast<std::size_t>(here.spec.placement.gpus_per_rank);
  throw Error(ErrorKind::kUsage,
              "host " + here.entry.name + " has " + count_of(gpus, "GPU") + " for " +
                  count_of(here.ranks.size(), "rank") + " of " + std::to_string(each) +
                  word_for(here.ranks.size(), "", " each") + " (--gpus-per-rank)",
              gpus < each ? "lower --gpus-per-rank, or leave it out"
                          : "state fewer slots there, lower -np, or use --map-by gpu");
}

// CUDA gives a program one MIG device, whatever its CUDA_VISIBLE_DEVICES names.
[[noreturn]] void refuse_mig_devices(const RanksOfHost& here, const PlannedRank& rank,
                                     const GpuFacts& mig) {
  throw Error(ErrorKind::kUsage,
              "rank " + std::to_string(rank.identity.rank) + " on host " + here.entry.name +
                  " would have " + std::to_string(rank.gpus.size()) +
                  " GPUs, and one is the MIG device " + printable(mig.uuid) +
                  ": a CUDA program sees one MIG device and nothing beside it",
              "leave out --gpus-per-rank, or name MIG devices one a rank, by their UUIDs "
              "('nvidia-smi -L' there lists them)");
}

void name_gpus(const RanksOfHost& here, const std::vector<GpuFacts>& known) {
  const std::vector<int> numbers = gpu_numbers(known);
  for (PlannedRank* rank : here.ranks) {
    for (const int gpu : rank->gpus) {
      const auto place = static_cast<std::size_t>(gpu);
      if (known[place].is_mig && rank->gpus.size() > 1)
        refuse_mig_devices(here, *rank, known[place]);
      rank->gpu_names.push_back({numbers[place], known[place].uuid});
    }
  }
}

// Ranks get the GPUs that a rankfile names; the other ranks get the remaining GPUs in order.
void assign_gpus(const RanksOfHost& here) {
  const std::vector<GpuFacts>& known = here.facts->gpus;
  std::vector<int> gpus = usable_gpus(here.entry, known);
  if (here.spec.placement.map_by.by == MapBy::kNuma) gpus = in_turn_by_node(gpus, known);
  for (PlannedRank* rank : here.ranks) {
    if (!here.has_placed_gpus(*rank)) continue;
    rank->gpus = find_gpus(here.place_of(*rank)->gpus, here.entry, known);
    for (const int gpu : rank->gpus) std::erase(gpus, gpu);
  }
  const auto each = static_cast<std::size_t>(here.spec.placement.gpus_per_rank);
  gpus = grouped_by_island(gpus, each, known);
  std::size_t first = 0;
  for (PlannedRank* rank : here.ranks) {
    if (here.has_placed_gpus(*rank)) continue;
    const bool are_needed = each > 1 || here.spec.placement.gpus_are_asked_for;
    if (are_needed && first + each > gpus.size()) refuse_gpus(here, gpus.size());
    for (std::size_t i = first; i < first + each && i < gpus.size(); ++i)
      rank->gpus.push_back(gpus[i]);
    first += each;
  }
  name_gpus(here, known);
}

// Sets the NUMA nodes of a rank whose cores a rankfile states, and the number of its cores. Throws
// Error(kUsage) for cores that this user may not use there.
void set_nodes_of_placed_rank(const RanksOfHost& here, PlannedRank* rank, int* own_cores) {
  std::set<int> usable, nodes;
  *own_cores = 0;
  for (const CoreFacts& core : here.facts->cores) {
    usable.insert(core.threads.begin(), core.threads.end());
    const bool is_its = std::any_of(core.threads.begin(), core.threads.end(), [&](int thread) {
      return std::binary_search(rank->cores.begin(), rank->cores.end(), thread);
    });
    if (!is_its) continue;
    nodes.insert(core.node);
    ++*own_cores;
  }
  rank->nodes.assign(nodes.begin(), nodes.end());
  for (const int core : rank->cores) {
    if (usable.empty() || usable.count(core) > 0) continue;
    throw Error(ErrorKind::kUsage,
                "the rankfile gives rank " + std::to_string(rank->identity.rank) + " core " +
                    std::to_string(core) + ", which ranks on host " + here.entry.name +
                    " may not use",
                "cores " + format_ranges({usable.begin(), usable.end()}));
  }
  *own_cores = std::max(*own_cores, 1);
}

// The NUMA node of a GPU; the host's node if it has a single one.
std::optional<int> node_of_gpu(const RanksOfHost& here, const GpuFacts* gpu) {
  if (gpu == nullptr || gpu->node) return gpu == nullptr ? std::nullopt : gpu->node;
  const std::vector<CoreFacts>& cores = here.facts->cores;
  const bool has_one_node = !cores.empty() && cores.front().node == cores.back().node;
  return has_one_node ? std::optional<int>(cores.front().node) : std::nullopt;
}

// Binds ranks to their cores, unless these are all cores of the host; sets OMP_NUM_THREADS.
void assign_cores(const RanksOfHost& here) {
  std::vector<PlannedRank*> unplaced;
  std::vector<std::optional<int>> gpu_nodes;
  const auto add_threads = [](PlannedRank* rank, int own_cores) {
    rank->variables.emplace_back("OMP_NUM_THREADS", std::to_string(own_cores));
  };
  for (PlannedRank* rank : here.ranks) {
    if (!rank->cores.empty()) {
      int own_cores = 1;
      set_nodes_of_placed_rank(here, rank, &own_cores);
      add_threads(rank, own_cores);
      continue;
    }
    unplaced.push_back(rank);
    gpu_nodes.push_back(node_of_gpu(here, here.gpu_of(*rank)));
  }
  if (unplaced.empty()) return;
  const auto bound =
      bind_ranks(here.spec.placement.bind_to, here.spec.placement.map_by.by == MapBy::kNuma,
                 here.facts->cores, here.facts->usable_cores, gpu_nodes, here.entry.name);
  std::size_t all = 0;
  for (const CoreFacts& core : here.facts->cores) all += core.threads.size();
  for (std::size_t i = 0; i < unplaced.size(); ++i) {
    add_threads(unplaced[i], bound[i].own_cores);
    unplaced[i]->nodes = bound[i].nodes;
    if (bound[i].threads.size() < all) unplaced[i]->cores = bound[i].threads;
  }
}

bool has_mig_device(const RanksOfHost& here) {
  return std::any_of(here.ranks.begin(), here.ranks.end(), [&here](const PlannedRank* rank) {
    const GpuFacts* const gpu = here.gpu_of(*rank);
    return gpu != nullptr && gpu->is_mig;
  });
}

// Ranks see only the job's GPUs where the user chose GPUs by name, and all GPUs where the job just
// has fewer ranks than GPUs. If one rank has a MIG device, each rank sees only its own GPUs: CUDA
// shows a program no other device next to a MIG device.
void add_gpu_variables(const RanksOfHost& here) {
  std::vector<int> of_job;
  bool is_chosen = !here.entry.gpus.empty() || !here.entry.without_gpus.empty();
  for (const PlannedRank* rank : here.ranks) {
    is_chosen |= here.has_placed_gpus(*rank);
    for (const int gpu : rank->gpus)
      if (std::find(of_job.begin(), of_job.end(), gpu) == of_job.end()) of_job.push_back(gpu);
  }
  bool is_in_order = true;  // a program's first GPU is the host's first
  for (std::size_t i = 0; i < of_job.size(); ++i) is_in_order &= of_job[i] == static_cast<int>(i);
  if (here.facts->gpus.empty()) return;
  const bool is_own = here.spec.placement.sees_only_its_gpus || has_mig_device(here);
  for (PlannedRank* rank : here.ranks) {
    if (is_own || is_chosen || !is_in_order)
      rank->variables.emplace_back("CUDA_VISIBLE_DEVICES",
                                   visible_devices(is_own ? rank->gpus : of_job, here.facts->gpus));
  }
}

// '=': NCCL takes the names as whole names, not as prefixes.
void add_network_variables(const RanksOfHost& here) {
  for (PlannedRank* rank : here.ranks) {
    if (!here.entry.interfaces.empty()) {
      rank->variables.emplace_back("HVRUN_INTERFACES", here.entry.interfaces);
      rank->variables.emplace_back("NCCL_SOCKET_IFNAME", "=" + here.entry.interfaces);
      rank->variables.emplace_back("GLOO_SOCKET_IFNAME", here.entry.interfaces);
    }
    if (!here.spec.placement.nic_bind || here.facts == nullptr) continue;
    std::vector<std::string> names, ports;
    for (const AdapterFacts& adapter :
         near_adapters(here.facts->rdma, here.gpu_of(*rank), rank->nodes)) {
      names.push_back(adapter.name);
      for (const int port : adapter.ports)
        ports.push_back(adapter.name + ":" + std::to_string(port));
    }
    if (names.empty()) continue;
    rank->variables.emplace_back("NCCL_IB_HCA", "=" + join(names, ","));
    rank->variables.emplace_back("UCX_NET_DEVICES", join(ports, ","));
  }
}

}  // namespace

void assign_resources(const JobSpec& spec, const HostList& list,
                      const std::vector<std::optional<HostFacts>>& facts, LaunchPlan* plan) {
  std::vector<std::vector<PlannedRank*>> by_host(plan->hosts.size());
  for (PlannedRank& rank : plan->ranks)
    by_host[static_cast<std::size_t>(rank.host)].push_back(&rank);
  HostEntry this_machine;
  this_machine.name = "localhost";
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) {
    const std::size_t entry = plan->hosts[i].entry;
    const RanksOfHost here{spec, list, list.this_machine ? this_machine : list.entries[entry],
                           facts.at(entry) ? &*facts.at(entry) : nullptr, by_host[i]};
    for (PlannedRank* rank : here.ranks) {
      const RankPlace* const place = here.place_of(*rank);
      if (place == nullptr) continue;
      rank->cores = place->cores;
      if (!place->sockets.empty() && here.facts != nullptr)
        rank->cores = threads_of_sockets(place->sockets, here.facts->cores, rank->identity.rank,
                                         here.entry.name);
    }
    if (here.facts != nullptr) {
      assign_gpus(here);
      assign_cores(here);
      add_gpu_variables(here);
    }
    add_network_variables(here);
  }
}

std::string gpus_as_text(const PlannedRank& rank) {
  std::set<int> numbers;
  std::vector<std::string> uuids;
  for (const PlannedGpu& gpu : rank.gpu_names) {
    numbers.insert(gpu.number);
    if (!gpu.uuid.empty()) uuids.push_back(printable(gpu.uuid));
  }
  const std::string text = format_ranges({numbers.begin(), numbers.end()});
  return uuids.empty() ? text : text + " (" + join(uuids, ", ") + ")";
}

std::string bindings_as_text(const LaunchPlan& plan) {
  std::string text;
  for (const PlannedRank& rank : plan.ranks) {
    text += "rank " + std::to_string(rank.identity.rank) + " on host " +
            plan.hosts[static_cast<std::size_t>(rank.host)].name + ": ";
    text += rank.cores.empty() ? "all cores" : "cores " + format_ranges(rank.cores);
    if (!rank.nodes.empty()) text += ", NUMA node " + format_ranges(rank.nodes);
    if (!rank.gpus.empty()) text += ", " + word_for(rank.gpus.size(), "GPU") + " ";
    text += gpus_as_text(rank);
    text += "\n";
  }
  return text;
}

}  // namespace hv::launcher
