// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/gpu_inventory.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostNameBytes = 96;

bool is_uuid(const std::string& name) { return !parse_integer(name).has_value(); }

bool names_uuid(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), is_uuid);
}

// The host's line or a rankfile names a GPU by UUID.
bool is_named_by_uuid(const HostList& list, std::size_t entry) {
  if (list.this_machine || entry >= list.entries.size()) return false;
  return names_uuid(list.entries[entry].gpus) ||
         std::any_of(list.rank_places.begin(), list.rank_places.end(),
                     [entry](const RankPlace& place) {
                       return place.entry == entry && names_uuid(place.gpus);
                     });
}

// "": the name may not become part of a variable of the ranks.
std::string device_name(const std::string& name) {
  const bool is_plain =
      name.size() <= kMostNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '/';
      });
  return is_plain ? name : "";
}

std::optional<int> node_of(std::int32_t reported, const wire::InventoryGpu* more) {
  if (reported == wire::kNoNode && more != nullptr) reported = more->node;
  return reported == wire::kNoNode ? std::nullopt : std::optional<int>(reported);
}

// more: nullptr where the inventory does not have this GPU.
GpuFacts whole_gpu(const wire::Gpu& gpu, std::size_t index, const wire::InventoryGpu* more) {
  GpuFacts facts{device_name(gpu.uuid), node_of(gpu.node, more), gpu.pci_path};
  if (facts.uuid.empty() && more != nullptr) facts.uuid = device_name(more->uuid);
  facts.cuda_name = facts.uuid.empty() ? std::to_string(index) : facts.uuid;
  facts.pci_address = printable(gpu.pci_address);
  facts.model = gpu.model;
  if (more != nullptr) facts.fault = fault_of(more->health);
  facts.fix = "reset it there once nothing uses it ('nvidia-smi -r -i " + facts.pci_address +
              "'), or drain the node";
  return facts;
}

// Adds the MIG devices of a GPU; the GPU itself, as unusable, if this user may open none of them.
void add_mig_devices(GpuFacts whole, const wire::InventoryGpu& reported,
                     std::vector<GpuFacts>* gpus) {
  bool has_any = false;
  for (const wire::MigDevice& mig : reported.mig) {
    if (!mig.may_open || device_name(mig.uuid).empty()) continue;
    GpuFacts part = whole;
    part.is_mig = has_any = true;
    part.gpu_uuid = whole.uuid;
    part.uuid = part.cuda_name = device_name(mig.uuid);
    part.old_name = "MIG-" + whole.uuid + "/" + std::to_string(mig.gpu_instance) + "/" +
                    std::to_string(mig.compute_instance);
    part.island.reset();  // MIG devices have no NVLink
    gpus->push_back(std::move(part));
  }
  if (has_any) return;
  if (whole.fault.empty()) {
    whole.fault = "it is in MIG mode, and there is no MIG device of it that this user may open";
    whole.fix = "have one made there ('nvidia-smi mig -cgi ... -C'), or MIG mode switched off";
  }
  gpus->push_back(std::move(whole));
}

bool has_several_models(const std::vector<wire::Gpu>& gpus) {
  return std::any_of(gpus.begin(), gpus.end(),
                     [&gpus](const wire::Gpu& gpu) { return gpu.model != gpus.front().model; });
}

bool has_index(const std::string& visible) {
  const std::vector<std::string> words = split(visible, ',');
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return parse_integer(trim(word)).value_or(-1) >= 0;
  });
}

}  // namespace

bool needs_inventory(const JobSpec& spec, const HostList& list, std::size_t entry,
                     const wire::Facts& reported) {
  if (reported.gpus.empty()) return false;
  const std::string visible(trim(reported.visible_devices));
  if (reported.has_visible_devices && !visible.empty() && visible.front() != '-') return true;
  const auto any = [&reported](auto holds) {
    return std::any_of(reported.gpus.begin(), reported.gpus.end(), holds);
  };
  if (any([](const wire::Gpu& gpu) { return gpu.has_mig; })) return true;
  return any([](const wire::Gpu& gpu) { return gpu.uuid.empty(); }) &&
         (spec.placement.sees_only_its_gpus || is_named_by_uuid(list, entry));
}

const std::string& problem_of(const wire::InventoryReply& reply) {
  return reply.problem.empty() ? reply.inventory.gpu_problem : reply.problem;
}

const wire::Inventory* inventory_of_gpus(const wire::InventoryReply& reply) {
  const bool is_of_use = !reply.is_missing && reply.problem.empty() &&
                         (problem_of(reply).empty() || !reply.inventory.gpus.empty());
  return is_of_use ? &reply.inventory : nullptr;
}

std::string fault_of(const wire::GpuHealth& health) {
  if (health.is_lost) return "it has fallen off the bus";
  if (health.needs_reset) return "the driver refuses it until it is reset";
  if (health.remap_failed) return "its memory is beyond repair (a row could not be remapped)";
  if (health.is_pending && health.volatile_errors > 0)
    return std::to_string(health.volatile_errors) +
           " uncorrected memory errors (ECC), whose repair waits for its reset";
  return "";
}

std::vector<int> islands_of(const std::vector<wire::InventoryGpu>& gpus) {
  std::vector<int> islands(gpus.size(), -1);
  std::map<std::string, std::set<std::size_t>> users;  // GPUs by far end; a GPU is its own far end
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].links.empty()) continue;
    users[gpus[i].pci_address].insert(i);
    for (const std::string& end : gpus[i].links) users[end].insert(i);
  }
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    if (gpus[first].links.empty() || islands[first] >= 0) continue;
    std::vector<std::size_t> ahead{first};
    islands[first] = static_cast<int>(first);
    while (!ahead.empty()) {
      const wire::InventoryGpu& gpu = gpus[ahead.back()];
      ahead.pop_back();
      std::vector<std::string> ends = gpu.links;
      ends.push_back(gpu.pci_address);
      for (const std::string& end : ends)
        for (const std::size_t next : std::exchange(users[end], {}))  // visited once
          if (std::exchange(islands[next], static_cast<int>(first)) < 0) ahead.push_back(next);
    }
  }
  return islands;
}

GpusOfHost gpus_of(const wire::Facts& reported, const wire::Inventory* inventory) {
  std::map<std::string, std::size_t> known;
  std::vector<int> islands;
  if (inventory != nullptr) {
    islands = islands_of(inventory->gpus);
    for (std::size_t i = 0; i < inventory->gpus.size(); ++i)
      known.emplace(inventory->gpus[i].pci_address, i);
  }
  GpusOfHost result;
  for (std::size_t i = 0; i < reported.gpus.size(); ++i) {
    const auto place = known.find(reported.gpus[i].pci_address);
    const auto* const more = place == known.end() ? nullptr : &inventory->gpus[place->second];
    GpuFacts gpu = whole_gpu(reported.gpus[i], i, more);
    if (more != nullptr && islands[place->second] >= 0) gpu.island = islands[place->second];
    if (more != nullptr && more->has_mig_mode) {
      add_mig_devices(std::move(gpu), *more, &result.gpus);
    } else {
      result.gpus.push_back(std::move(gpu));
    }
  }
  if (!reported.has_visible_devices) return result;
  const bool are_all_named =
      inventory != nullptr && std::none_of(result.gpus.begin(), result.gpus.end(),
                                           [](const GpuFacts& gpu) { return gpu.uuid.empty(); });
  if (has_index(reported.visible_devices) && !reported.has_pci_order &&
      has_several_models(reported.gpus))
    result.warnings.push_back(
        "CUDA_VISIBLE_DEVICES=" + printable(reported.visible_devices) +
        " names GPUs by index, and they are of different models: in PCI order, in which it is "
        "taken, these may be others than CUDA's own order (fastest first) means; set "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID there, or UUIDs");
  result.gpus = visible_gpus(result.gpus, reported.visible_devices, are_all_named);
  return result;
}

}  // namespace hv::launcher
