// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/inventory.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "hvrun_version.h"
#include "launcher/facts/gpus.h"
#include "launcher/inventory/hwloc_topology.h"
#include "launcher/inventory/nvml_gpus.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds text; bytes that are none are shown escaped.
std::string json_text(const std::string& bytes) { return printable(bytes, 4096); }

Json text_or_null(const std::string& bytes) {
  return bytes.empty() ? Json(nullptr) : Json(json_text(bytes));
}

Json mig_as_json(const wire::MigDevice& mig) {
  Json json;
  json["uuid"] = text_or_null(mig.uuid);
  json["name"] = text_or_null(mig.name);
  json["gpu_instance"] = mig.gpu_instance;
  json["compute_instance"] = mig.compute_instance;
  json["memory_bytes"] = mig.memory_bytes;
  json["may_open"] = mig.may_open;
  return json;
}

Json health_as_json(const wire::GpuHealth& health) {
  Json json;
  json["lost"] = health.is_lost;
  json["needs_reset"] = health.needs_reset;
  json["repair_pending"] = health.is_pending;
  json["repair_failed"] = health.remap_failed;
  json["uncorrected_errors"] = health.volatile_errors;
  json["uncorrected_errors_ever"] = health.aggregate_errors;
  return json;
}

Json gpu_as_json(const wire::InventoryGpu& gpu, std::size_t index) {
  Json json;
  json["index"] = index;
  json["pci_address"] = json_text(gpu.pci_address);
  json["uuid"] = text_or_null(gpu.uuid);
  json["name"] = text_or_null(gpu.name);
  json["minor"] = gpu.minor;
  json["memory_bytes"] = gpu.memory_bytes;
  json["numa_node"] = gpu.node == wire::kNoNode ? Json(nullptr) : Json(gpu.node);
  json["near_cores"] = text_or_null(gpu.near_cores);
  json["mig_mode"] = gpu.has_mig_mode;
  json["mig_devices"] = Json::array();
  for (const wire::MigDevice& mig : gpu.mig) json["mig_devices"].push_back(mig_as_json(mig));
  json["nvlinks_to"] = Json::array();
  for (const std::string& end : gpu.links) json["nvlinks_to"].push_back(json_text(end));
  json["health"] = health_as_json(gpu.health);
  return json;
}

}  // namespace

wire::Inventory take_inventory(const InventorySources& sources) {
  wire::Inventory inventory;
  inventory.build = HVRUN_BUILD_ID;
  HwlocReading hwloc = read_hwloc(sources.hwloc);
  inventory.topology = std::move(hwloc.topology);
  inventory.topology_problem = std::move(hwloc.problem);
  NvmlReading nvml = read_nvml(sources.nvml, read_gpus(sources.root), sources.root);
  inventory.driver = std::move(nvml.driver);
  inventory.gpus = std::move(nvml.gpus);
  inventory.gpu_problem = std::move(nvml.problem);
  for (wire::InventoryGpu& gpu : inventory.gpus) {
    const auto place = hwloc.devices.find(gpu.pci_address);
    if (place == hwloc.devices.end()) continue;
    gpu.node = place->second.node;
    gpu.near_cores = place->second.cores;
  }
  return inventory;
}

std::string inventory_as_json(const wire::Inventory& inventory) {
  Json json;
  json["version"] = 1;
  json["driver"] = text_or_null(inventory.driver);
  json["gpus"] = Json::array();
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i)
    json["gpus"].push_back(gpu_as_json(inventory.gpus[i], i));
  const wire::Topology& topology = inventory.topology;
  json["topology"]["packages"] = topology.packages;
  json["topology"]["numa_nodes"] = topology.numa_nodes;
  json["topology"]["cores"] = topology.cores;
  json["topology"]["threads"] = topology.threads;
  json["topology"]["caches"] = topology.caches;
  json["problems"] = Json::array();
  for (const std::string& problem : {inventory.gpu_problem, inventory.topology_problem})
    if (!problem.empty()) json["problems"].push_back(json_text(problem));
  return json.dump(2) + "\n";
}

}  // namespace hv::launcher
