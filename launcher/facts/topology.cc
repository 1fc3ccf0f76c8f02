// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/topology.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Each has a core.
constexpr std::int64_t kMostNodes = kMostCores;

std::string trimmed(const std::string& path) {
  return std::string(trim(read_file(path, 1 << 16).value_or("")));
}

bool has_core(const CoreMask& mask, std::uint32_t core) {
  return core / 64 < mask.size() && (mask[core / 64] >> core % 64 & 1) != 0;
}

// The node of each core, of those that are told.
std::map<std::uint32_t, std::uint32_t> nodes_of_cores(const std::string& root) {
  std::map<std::uint32_t, std::uint32_t> nodes;
  const std::string folder = root + "/sys/devices/system/node";
  for (const std::string& name : names_in(folder)) {
    const auto node = name.rfind("node", 0) == 0 ? parse_integer(name.substr(4)) : std::nullopt;
    if (!node || *node < 0 || *node >= kMostNodes) continue;
    const auto cores = parse_core_list(trimmed(folder + "/" + name + "/cpulist"));
    if (!cores) continue;
    for (const std::uint32_t core : *cores) nodes[core] = static_cast<std::uint32_t>(*node);
  }
  return nodes;
}

// Of one core; itself alone where the system does not tell.
std::vector<std::uint32_t> threads_beside(std::uint32_t thread, const std::string& root) {
  const auto told =
      parse_core_list(trimmed(root + "/sys/devices/system/cpu/cpu" + std::to_string(thread) +
                              "/topology/thread_siblings_list"));
  if (!told || std::find(told->begin(), told->end(), thread) == told->end()) return {thread};
  return *told;
}

// One package where the system does not tell.
std::uint32_t package_of(std::uint32_t thread, const std::string& root) {
  const auto told =
      parse_integer(trimmed(root + "/sys/devices/system/cpu/cpu" + std::to_string(thread) +
                            "/topology/physical_package_id"));
  return told && *told >= 0 && *told < kMostNodes ? static_cast<std::uint32_t>(*told) : 0;
}

std::vector<std::uint32_t> ports_up(const std::string& adapter) {
  const std::string folder = adapter + "/ports";
  std::vector<std::uint32_t> ports;
  for (const std::string& name : names_in(folder)) {
    const auto port = parse_integer(name);
    if (port && *port > 0 && *port < 256 &&
        trimmed(folder + "/" + name + "/state").find("ACTIVE") != std::string::npos)
      ports.push_back(static_cast<std::uint32_t>(*port));
  }
  std::sort(ports.begin(), ports.end());
  return ports;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> parse_core_list(const std::string& text) {
  std::vector<std::uint32_t> cores;
  for (const std::string& part : split(trim(text), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= std::int64_t{kMostCores})
      return std::nullopt;
    for (std::int64_t core = *first; core <= *last; ++core)
      cores.push_back(static_cast<std::uint32_t>(core));
    if (cores.size() > kMostCores) return std::nullopt;  // the same ones again and again
  }
  return cores;
}

std::vector<wire::Core> read_cores(const CoreMask& usable, const std::string& root) {
  const auto nodes = nodes_of_cores(root);
  std::vector<wire::Core> cores;
  std::set<std::uint32_t> seen;
  for (std::uint32_t thread = 0; thread < usable.size() * 64; ++thread) {
    if (!has_core(usable, thread) || seen.count(thread) > 0) continue;
    wire::Core core;
    const auto node = nodes.find(thread);
    core.node = node == nodes.end() ? 0 : node->second;
    core.package = package_of(thread, root);
    for (const std::uint32_t sibling : threads_beside(thread, root))
      if (has_core(usable, sibling) && seen.insert(sibling).second) core.threads.push_back(sibling);
    cores.push_back(std::move(core));
  }
  std::stable_sort(cores.begin(), cores.end(),
                   [](const wire::Core& a, const wire::Core& b) { return a.node < b.node; });
  return cores;
}

PciPlace pci_place(const std::string& folder) {
  PciPlace place;
  const auto node = parse_integer(trimmed(folder + "/numa_node"));
  if (node && *node >= 0 && *node < kMostNodes) place.node = static_cast<std::int32_t>(*node);
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(folder.c_str(), nullptr), ::free);
  if (!real) return place;
  const std::string path = real.get();
  const std::size_t tree = path.find("/pci");
  if (tree != std::string::npos) place.path = path.substr(tree + 1, 4096);
  return place;
}

std::vector<wire::RdmaAdapter> read_rdma(const std::string& root) {
  const std::string folder = root + "/sys/class/infiniband";
  std::vector<std::string> names = names_in(folder);
  std::sort(names.begin(), names.end());
  std::vector<wire::RdmaAdapter> adapters;
  for (const std::string& name : names) {
    std::vector<std::uint32_t> ports = ports_up(folder + "/" + name);
    if (ports.empty()) continue;
    const PciPlace place = pci_place(folder + "/" + name + "/device");
    adapters.push_back({name, place.node, place.path, std::move(ports)});
  }
  return adapters;
}

}  // namespace hv::launcher
