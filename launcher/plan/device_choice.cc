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

// Places of the devices that a user names by an index, or a GPU's or MIG device's UUID.
std::vector<int> places_of(const std::string& name, const std::vector<GpuFacts>& gpus,
                           const std::vector<int>& numbers) {
  const auto index = parse_integer(name);
  std::vector<int> places;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (index ? *index == numbers[i]
              : gpus[i].uuid == name || (gpus[i].is_mig && gpus[i].gpu_uuid == name))
      places.push_back(static_cast<int>(i));
  return places;
}

[[noreturn]] void refuse_fault(const GpuFacts& gpu, int number, const HostEntry& entry) {
  throw Error(ErrorKind::kUsage,
              describe_gpu(gpu, number, entry.name) + " can do no work, and is asked for (" +
                  entry.origin + "): " + gpu.fault,
              "name another one, or " + gpu.fix);
}

// By a word of CUDA_VISIBLE_DEVICES.
bool is_meant(const std::string& word, bool is_name, const GpuFacts& gpu, int number) {
  if (!is_name) return parse_integer(word) == std::optional<std::int64_t>(number);
  if (gpu.uuid.rfind(word, 0) == 0) return true;
  return gpu.is_mig && (gpu.gpu_uuid.rfind(word, 0) == 0 || gpu.old_name == word);
}

// The first island of these GPUs that has so many of them, else the fullest; none: none is told.
std::optional<int> best_island(const std::vector<int>& of, std::size_t wanted,
                               const std::vector<GpuFacts>& gpus) {
  std::map<int, std::size_t> sizes;
  std::vector<int> order;
  for (const int gpu : of) {
    const auto island = gpus.at(static_cast<std::size_t>(gpu)).island;
    if (!island) continue;
    if (++sizes[*island] == 1) order.push_back(*island);
  }
  std::optional<int> best;
  for (const int island : order)
    if (!best || (sizes[*best] < wanted && sizes[island] > sizes[*best])) best = island;
  return best;
}

}  // namespace

std::vector<int> gpu_numbers(const std::vector<GpuFacts>& gpus) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool is_next_part = i > 0 && gpus[i].is_mig && gpus[i - 1].is_mig &&
                              !gpus[i].pci_address.empty() &&
                              gpus[i].pci_address == gpus[i - 1].pci_address;
    numbers.push_back(i == 0 ? 0 : numbers.back() + (is_next_part ? 0 : 1));
  }
  return numbers;
}

std::string describe_gpu(const GpuFacts& gpu, int number, const std::string& host) {
  std::vector<std::string> names;
  for (const std::string& name : {gpu.pci_address, gpu.is_mig ? gpu.gpu_uuid : gpu.uuid})
    if (!name.empty()) names.push_back(printable(name));
  return "GPU " + std::to_string(number) + " of host " + host +
         (names.empty() ? "" : " (" + join(names, ", ") + ")");
}

std::vector<int> find_gpus(const std::vector<std::string>& names, const HostEntry& entry,
                           const std::vector<GpuFacts>& gpus) {
  const std::vector<int> numbers = gpu_numbers(gpus);
  std::vector<int> found;
  for (const std::string& name : names) {
    const std::vector<int> places = places_of(name, gpus, numbers);
    if (places.empty())
      throw Error(
          ErrorKind::kUsage,
          "host " + entry.name + " has no GPU " + name + " (" + entry.origin + "): there are " +
              std::to_string(numbers.empty() ? 0 : numbers.back() + 1) + " that this user may open",
          "'nvidia-smi -L' there lists them; indices count from 0 in PCI order, or in the order of "
          "CUDA_VISIBLE_DEVICES where it is set there");
    for (const int place : places) {
      if (std::find(found.begin(), found.end(), place) != found.end())
        throw Error(
            ErrorKind::kUsage,
            "GPU " + name + " of host " + entry.name + " is named twice (" + entry.origin + ")",
            "name each GPU once, by its index or by its UUID");
      const auto at = static_cast<std::size_t>(place);
      if (!gpus[at].fault.empty()) refuse_fault(gpus[at], numbers[at], entry);
      found.push_back(place);
    }
  }
  return found;
}

std::vector<int> usable_gpus(const HostEntry& entry, const std::vector<GpuFacts>& gpus) {
  const bool are_only_slots = entry.gpus_are_slots && gpus.empty();
  if (!entry.gpus.empty() && !are_only_slots) return find_gpus(entry.gpus, entry, gpus);
  const std::vector<int> numbers = gpu_numbers(gpus);
  const std::vector<int>& without = entry.without_gpus;
  std::vector<int> usable;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].fault.empty() &&
        std::find(without.begin(), without.end(), numbers[i]) == without.end())
      usable.push_back(static_cast<int>(i));
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

std::vector<int> grouped_by_island(const std::vector<int>& chosen, std::size_t each,
                                   const std::vector<GpuFacts>& gpus) {
  std::vector<int> left = chosen, result;
  while (each > 1 && !left.empty()) {
    const std::size_t whole = std::min(result.size() + each, chosen.size());
    while (result.size() < whole) {
      const auto island = best_island(left, whole - result.size(), gpus);
      for (std::size_t i = 0; i < left.size() && result.size() < whole;) {
        if (island && gpus.at(static_cast<std::size_t>(left[i])).island != island) {
          ++i;
          continue;
        }
        result.push_back(left[i]);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
        if (!island) break;
      }
    }
  }
  result.insert(result.end(), left.begin(), left.end());
  return result;
}

std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& gpus, const std::string& visible,
                                   bool are_all_named) {
  const std::vector<int> numbers = gpu_numbers(gpus);
  std::vector<GpuFacts> seen;
  for (const std::string& piece : split(visible, ',')) {
    const std::string word(trim(piece));
    const bool is_name = word.rfind("GPU-", 0) == 0 || word.rfind("MIG-", 0) == 0;
    // A beginning may fit several: the first counts. All parts of one that is cut up are meant.
    const bool is_part_name = word.rfind("MIG-", 0) == 0;
    bool is_found = false;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const bool may_be_more = !is_part_name && gpus[i].is_mig;
      if ((is_found && !may_be_more) || !is_meant(word, is_name, gpus[i], numbers[i])) continue;
      is_found = true;
      seen.push_back(gpus[i]);
      if (is_name && !gpus[i].is_mig) seen.back().cuda_name = word;  // as it was written
    }
    if (is_found) continue;
    if (!is_name || are_all_named) break;
    seen.push_back(GpuFacts{});
    seen.back().uuid = seen.back().cuda_name = word;
    seen.back().is_mig = word.rfind("MIG-", 0) == 0;
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
