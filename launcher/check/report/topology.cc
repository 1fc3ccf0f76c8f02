// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/report/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostNameBytes = 200;
// "pci0000:3a/0000:3a:01.0": a device's path begins with its root bus and its root port.
constexpr std::size_t kStepsToRootPort = 2;

template <class T>
void add_once(T value, std::vector<T>* values) {
  if (std::find(values->begin(), values->end(), value) == values->end())
    values->push_back(std::move(value));
}

// What hvrun-inventory told of each GPU, by PCI address.
using Told = std::map<std::string, const wire::InventoryGpu*>;

Told told_of(const wire::Inventory* inventory) {
  Told told;
  if (inventory == nullptr) return told;
  for (const wire::InventoryGpu& gpu : inventory->gpus) told.emplace(gpu.pci_address, &gpu);
  return told;
}

struct FarEnds {
  std::map<std::string, int> gpus;  // NVLinks that go straight to a GPU
  int switches = 0;
};

FarEnds far_ends(const std::string& pci_address, const Told& told) {
  FarEnds ends;
  const auto gpu = told.find(pci_address);
  if (gpu == told.end()) return ends;
  for (const std::string& end : gpu->second->links) {
    if (told.count(end) != 0) {
      ++ends.gpus[end];
    } else {
      ++ends.switches;
    }
  }
  return ends;
}

// Devices of which the root port is known and the same.
bool is_below_one_switch(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = split(one, '/'), b = split(other, '/');
  const auto has_port = [](const auto& path) { return path.size() > kStepsToRootPort; };
  return has_port(a) && has_port(b) &&
         std::equal(a.begin(), a.begin() + kStepsToRootPort, b.begin());
}

GpuLink link_between(const TopologyHost& host, std::size_t from, std::size_t to,
                     const std::vector<std::string>& pci_paths, const Told& told) {
  const TopologyGpu &one = host.gpus[from], &other = host.gpus[to];
  GpuLink link{from, to};
  const FarEnds ends = far_ends(one.pci_address, told), others = far_ends(other.pci_address, told);
  const auto direct = ends.gpus.find(other.pci_address);
  link.nvlinks =
      (direct == ends.gpus.end() ? 0 : direct->second) + std::min(ends.switches, others.switches);
  if (one.parts > 0 || other.parts > 0) link.nvlinks = 0;  // MIG devices do without
  if (link.nvlinks > 0) {
    link.path = GpuPath::kNvlink;
  } else if (is_below_one_switch(pci_paths[from], pci_paths[to])) {
    link.path = GpuPath::kPcieSwitch;
  } else if (one.node && other.node) {
    link.path = one.node == other.node ? GpuPath::kNode : GpuPath::kAcrossNodes;
  }
  return link;
}

// devices: of which a GPU in MIG mode is several.
void add_gpus(const HostFacts& facts, const Told& told, TopologyHost* host) {
  const std::vector<int> numbers = gpu_numbers(facts.gpus);
  std::vector<std::string> pci_paths;
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    const GpuFacts& device = facts.gpus[i];
    if (i == 0 || numbers[i] != numbers[i - 1]) {
      TopologyGpu& gpu = host->gpus.emplace_back();
      gpu.number = numbers[i];
      gpu.model = printable(device.model, kMostNameBytes);
      gpu.pci_address = device.pci_address;
      gpu.node = device.node;
      gpu.fault = device.fault;
      pci_paths.push_back(device.pci_path);
      if (const auto more = told.find(device.pci_address); more != told.end())
        gpu.memory_bytes = more->second->memory_bytes;
      gpu.switch_links = device.is_mig ? 0 : far_ends(device.pci_address, told).switches;
    }
    if (device.is_mig) ++host->gpus.back().parts;
  }
  for (std::size_t from = 0; from < host->gpus.size(); ++from)
    for (std::size_t to = from + 1; to < host->gpus.size(); ++to)
      host->links.push_back(link_between(*host, from, to, pci_paths, told));
}

// A host with one node has everything there, whatever the devices tell.
std::optional<int> node_for(std::optional<int> told, const TopologyHost& host) {
  return host.nodes.size() == 1 && host.nodes[0].number ? host.nodes[0].number : told;
}

TopologyNode& node_of(std::optional<int> number, TopologyHost* host) {
  const auto found =
      std::find_if(host->nodes.begin(), host->nodes.end(),
                   [number](const TopologyNode& node) { return node.number == number; });
  if (found != host->nodes.end()) return *found;
  TopologyNode& node = host->nodes.emplace_back();
  node.number = number;
  return node;
}

void add_nodes(const HostFacts& facts, TopologyHost* host) {
  for (const CoreFacts& core : facts.cores) {
    TopologyNode& node = node_of(core.node, host);
    node.package = core.package;
    node.cores.push_back({core.threads, {}});
  }
  for (TopologyGpu& gpu : host->gpus) gpu.node = node_for(gpu.node, *host);
  for (std::size_t i = 0; i < host->gpus.size(); ++i)
    node_of(host->gpus[i].node, host).gpus.push_back(i);
  for (const AdapterFacts& adapter : facts.rdma)
    node_of(node_for(adapter.node, *host), host)
        .adapters.push_back(printable(adapter.name, kMostNameBytes));
  const auto place = [](const TopologyNode& node) {
    return std::pair(!node.number, node.number.value_or(0));
  };
  std::stable_sort(
      host->nodes.begin(), host->nodes.end(),
      [&](const TopologyNode& a, const TopologyNode& b) { return place(a) < place(b); });
}

// threads: sorted.
bool is_bound_to(const TopologyCore& core, const std::vector<int>& threads) {
  return std::any_of(core.threads.begin(), core.threads.end(), [&](int thread) {
    return std::binary_search(threads.begin(), threads.end(), thread);
  });
}

void add_rank(const PlannedRank& planned, TopologyHost* host) {
  TopologyRank rank{planned.identity.rank, planned.identity.local_rank, {}, planned.cores};
  std::sort(rank.cores.begin(), rank.cores.end());
  TopologyNode* home = nullptr;
  for (TopologyNode& node : host->nodes) {
    for (TopologyCore& core : node.cores) {
      if (!is_bound_to(core, rank.cores)) continue;
      core.ranks.push_back(rank.rank);
      if (home == nullptr) home = &node;
    }
  }
  for (const PlannedGpu& gpu : planned.gpu_names) {
    add_once(gpu.number, &rank.gpus);
    for (TopologyGpu& there : host->gpus) {
      if (there.number != gpu.number) continue;
      add_once(rank.rank, &there.ranks);
      if (home == nullptr) home = &node_of(there.node, host);
    }
  }
  (home == nullptr ? host->ranks_of_no_node : home->ranks).push_back(rank.rank);
  host->ranks.push_back(std::move(rank));
}

TopologyHost host_of(const CheckedHost& checked, bool is_reached) {
  TopologyHost host;
  host.name = printable(checked.name, kMostNameBytes);
  host.is_reached = is_reached;
  if (!is_reached) return host;
  const wire::Inventory* const inventory =
      checked.inventory ? &checked.inventory->inventory : nullptr;
  const HostFacts facts = host_facts(*checked.facts, inventory);
  host.memory_bytes = checked.facts->memory_bytes;
  if (inventory != nullptr) {
    host.packages = inventory->topology.packages;
    for (const std::string& cache : inventory->topology.caches)
      host.caches.push_back(printable(cache, kMostNameBytes));
  }
  add_gpus(facts, told_of(inventory), &host);
  add_nodes(facts, &host);
  return host;
}

// Each pair has been tried from both ends.
std::vector<HostPath> paths_of(const CheckInput& input) {
  std::map<std::pair<std::size_t, std::size_t>, HostPath> paths;
  for (const PairFacts& pair : input.pairs) {
    const auto [from, to] = std::minmax(pair.from, pair.to);
    if (from == to || to >= input.hosts.size()) continue;
    const auto [place, is_new] = paths.try_emplace({from, to}, HostPath{from, to, true});
    HostPath& path = place->second;
    path.is_reached = path.is_reached && !pair.reached.empty();
    if (!pair.measure) continue;
    const double speed = pair.measure->megabytes_per_s, time = pair.measure->round_trip_us;
    if (speed > 0 && (!path.megabytes_per_s || speed < *path.megabytes_per_s)) {
      path.megabytes_per_s = speed;
      path.address = printable(pair.address, kMostNameBytes);
      path.receiver = pair.to;
    }
    if (time > 0 && (!path.round_trip_us || time > *path.round_trip_us)) path.round_trip_us = time;
  }
  std::vector<HostPath> list;
  for (auto& [key, path] : paths) list.push_back(std::move(path));
  return list;
}

}  // namespace

const char* path_in_words(GpuPath path) {
  switch (path) {
    case GpuPath::kNvlink:
      return "NVLink";
    case GpuPath::kPcieSwitch:
      return "one PCIe switch";
    case GpuPath::kNode:
      return "one NUMA node";
    case GpuPath::kAcrossNodes:
      return "across NUMA nodes";
    case GpuPath::kUnknown:
      break;
  }
  return "not known";
}

JobTopology topology_of(const CheckInput& input) {
  JobTopology topology;
  for (std::size_t i = 0; i < input.hosts.size(); ++i)
    topology.hosts.push_back(host_of(input.hosts[i], input.is_reached(i)));
  for (const PlannedRank& rank : input.plan.ranks) {
    const auto host = static_cast<std::size_t>(rank.host);
    if (host < topology.hosts.size()) add_rank(rank, &topology.hosts[host]);
  }
  topology.paths = paths_of(input);
  return topology;
}

}  // namespace hv::launcher
