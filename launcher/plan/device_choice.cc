// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/device_choice.h"

#include <algorithm>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Steps from the root that two places in the PCI tree have in common.
std::size_t common_steps(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = split(one, '/'), b = split(other, '/');
  std::size_t steps = 0;
  while (steps < a.size() && steps < b.size() && a[steps] == b[steps]) ++steps;
  return steps;
}

}  // namespace

std::vector<int> find_gpus(const std::vector<std::string>& names, const HostEntry& entry,
                           const std::vector<GpuFacts>& gpus) {
  std::vector<int> found;
  for (const std::string& name : names) {
    const auto by_uuid = std::find_if(gpus.begin(), gpus.end(),
                                      [&name](const GpuFacts& gpu) { return gpu.uuid == name; });
    const auto index = parse_integer(name);
    if (index ? *index >= static_cast<std::int64_t>(gpus.size()) : by_uuid == gpus.end())
      throw Error(ErrorKind::kUsage,
                  "host " + entry.name + " has no GPU " + name + " (" + entry.origin +
                      "): there are " + std::to_string(gpus.size()) + " that this user may open",
                  "'nvidia-smi -L' there lists them; indices count from 0 in PCI order");
    const auto place = index ? *index : by_uuid - gpus.begin();
    if (std::find(found.begin(), found.end(), static_cast<int>(place)) != found.end())
      throw Error(
          ErrorKind::kUsage,
          "GPU " + name + " of host " + entry.name + " is named twice (" + entry.origin + ")",
          "name each GPU once, by its index or by its UUID");
    found.push_back(static_cast<int>(place));
  }
  return found;
}

std::vector<int> usable_gpus(const HostEntry& entry, const std::vector<GpuFacts>& gpus) {
  const bool are_only_slots = entry.gpus_are_slots && gpus.empty();
  if (!entry.gpus.empty() && !are_only_slots) return find_gpus(entry.gpus, entry, gpus);
  std::vector<int> usable;
  const std::vector<int>& without = entry.without_gpus;
  for (int gpu = 0; gpu < static_cast<int>(gpus.size()); ++gpu)
    if (std::find(without.begin(), without.end(), gpu) == without.end()) usable.push_back(gpu);
  return usable;
}

std::vector<int> in_turn_by_node(const std::vector<int>& chosen,
                                 const std::vector<GpuFacts>& gpus) {
  std::map<std::optional<int>, std::vector<int>> by_node;
  for (const int gpu : chosen) by_node[gpus.at(static_cast<std::size_t>(gpu)).node].push_back(gpu);
  std::vector<int> result;
  for (std::size_t round = 0; result.size() < chosen.size(); ++round)
    for (const auto& [node, of_node] : by_node)
      if (round < of_node.size()) result.push_back(of_node[round]);
  return result;
}

std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& gpus, const std::string& visible) {
  std::vector<GpuFacts> seen;
  for (const std::string& piece : split(visible, ',')) {
    const std::string word(trim(piece));
    const auto index = parse_integer(word);
    if (index && *index >= 0 && *index < static_cast<std::int64_t>(gpus.size())) {
      seen.push_back(gpus[static_cast<std::size_t>(*index)]);
      continue;
    }
    if (word.rfind("GPU-", 0) != 0 && word.rfind("MIG-", 0) != 0) break;
    const auto found = std::find_if(gpus.begin(), gpus.end(), [&word](const GpuFacts& gpu) {
      return gpu.uuid.rfind(word, 0) == 0;
    });
    seen.push_back(found == gpus.end() ? GpuFacts{} : *found);
    seen.back().uuid = found == gpus.end() ? word : found->uuid;
    seen.back().cuda_name = word;
  }
  return seen;
}

std::string visible_devices(const std::vector<int>& chosen, const std::vector<GpuFacts>& gpus) {
  std::vector<std::string> words;
  for (const int gpu : chosen) words.push_back(gpus.at(static_cast<std::size_t>(gpu)).cuda_name);
  return join(words, ",");
}

std::vector<AdapterFacts> near_adapters(const std::vector<AdapterFacts>& adapters,
                                        const GpuFacts* gpu, const std::vector<int>& nodes) {
  const auto nearness = [&](const AdapterFacts& adapter) -> std::size_t {
    if (gpu != nullptr && !gpu->pci_path.empty() && !adapter.pci_path.empty())
      return common_steps(gpu->pci_path, adapter.pci_path);
    if (gpu != nullptr) return gpu->node && gpu->node == adapter.node ? 1 : 0;
    const bool is_near =
        adapter.node && std::find(nodes.begin(), nodes.end(), *adapter.node) != nodes.end();
    return is_near ? 1 : 0;
  };
  std::size_t nearest = 0;
  for (const AdapterFacts& adapter : adapters) nearest = std::max(nearest, nearness(adapter));
  std::vector<AdapterFacts> near;
  for (const AdapterFacts& adapter : adapters) {
    // Where each lies in another tree of PCI the node decides.
    const bool is_in_node = gpu != nullptr && gpu->node && gpu->node == adapter.node;
    if (nearest > 0 ? nearness(adapter) == nearest : is_in_node) near.push_back(adapter);
  }
  return near;
}

}  // namespace hv::launcher
