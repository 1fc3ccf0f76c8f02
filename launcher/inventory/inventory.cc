// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/inventory.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "hvrun_version.h"
#include "launcher/facts/gpus.h"
#include "launcher/inventory/hwloc_topology.h"
#include "launcher/inventory/kernel_log.h"
#include "launcher/inventory/nvml_gpus.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds text; bytes that are none are shown escaped.
std::string json_text(const std::string& bytes) { return printable(bytes, 4096); }

Json text_or_null(const std::string& bytes) {
  return bytes.empty() ? Json(nullptr) : Json(json_text(bytes));
}

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json number_or_null(std::uint64_t number) { return number == 0 ? Json(nullptr) : Json(number); }

void add_use(const wire::GpuUse& use, Json* json) {
  (*json)["used_bytes"] = value_or_null(use.used_bytes);
  (*json)["busy_percent"] = value_or_null(use.busy_percent);
  Json& processes = (*json)["processes"] = Json::array();
  for (const wire::GpuProcess& process : use.processes)
    processes.push_back({{"pid", process.pid},
                         {"name", text_or_null(process.name)},
                         {"memory_bytes", number_or_null(process.memory_bytes)}});
}

Json mig_as_json(const wire::MigDevice& mig) {
  Json json;
  json["uuid"] = text_or_null(mig.uuid);
  json["name"] = text_or_null(mig.name);
  json["gpu_instance"] = mig.gpu_instance;
  json["compute_instance"] = mig.compute_instance;
  json["memory_bytes"] = mig.memory_bytes;
  json["may_open"] = mig.may_open;
  add_use(mig.use, &json);
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

Json pcie_as_json(const wire::PcieLink& link) {
  Json json;
  json["width"] = number_or_null(link.width);
  json["max_width"] = number_or_null(link.most_width);
  json["generation"] = number_or_null(link.generation);
  json["max_generation"] = number_or_null(link.most_generation);
  return json;
}

// What may change from one moment to the next, or by an administrator's hand.
void add_state(const wire::InventoryGpu& gpu, Json* json) {
  add_use(gpu.use, json);
  (*json)["compute_mode"] = text_or_null(gpu.compute_mode);
  (*json)["persistence_mode"] = value_or_null(gpu.has_persistence);
  (*json)["ecc_mode"] = value_or_null(gpu.has_ecc);
  (*json)["slowed_by"] = text_or_null(gpu.slowdown);
  (*json)["pcie"] = pcie_as_json(gpu.pcie);
  Json& peers = (*json)["peer_access"] = Json::array();
  for (const wire::PeerAccess& peer : gpu.peers)
    peers.push_back({{"to", json_text(peer.pci_address)},
                     {"works", peer.refusal.empty()},
                     {"reason", text_or_null(peer.refusal)}});
  Json& xids = (*json)["xids"] = Json::array();
  for (const wire::Xid& xid : gpu.xids)
    xids.push_back(
        {{"number", xid.number}, {"seconds_ago", xid.seconds_ago}, {"text", json_text(xid.text)}});
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
  add_state(gpu, &json);
  return json;
}

void add_xids(const std::string& root, wire::Inventory* inventory) {
  const auto uptime =
      std::chrono::duration_cast<std::chrono::microseconds>(now().time_since_epoch());
  XidReading reading = read_xids(uptime.count(), root);
  inventory->xid_problem = std::move(reading.problem);
  for (wire::InventoryGpu& gpu : inventory->gpus) {
    const auto its = reading.by_address.find(gpu.pci_address);
    if (its != reading.by_address.end()) gpu.xids = std::move(its->second);
  }
}

}  // namespace

wire::Inventory take_inventory(const InventorySources& sources) {
  wire::Inventory inventory;
  inventory.build = HVRUN_BUILD_ID;
  NvmlReading nvml = read_nvml(sources.nvml, read_gpus(sources.root), sources.root);
  inventory.driver = std::move(nvml.driver);
  inventory.gpus = std::move(nvml.gpus);
  inventory.gpu_problem = std::move(nvml.problem);
  inventory.cuda = std::move(nvml.cuda);
  inventory.start_s = nvml.start_s;
  if (!inventory.gpus.empty()) add_xids(sources.root, &inventory);
  HwlocReading hwloc = read_hwloc(sources.hwloc, !inventory.gpus.empty());
  inventory.topology = std::move(hwloc.topology);
  inventory.topology_problem = std::move(hwloc.problem);
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
  json["cuda"] = text_or_null(inventory.cuda);
  json["driver_start_s"] = inventory.start_s;
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
  for (const std::string& problem :
       {inventory.gpu_problem, inventory.topology_problem, inventory.xid_problem})
    if (!problem.empty()) json["problems"].push_back(json_text(problem));
  return json.dump(2) + "\n";
}

}  // namespace hv::launcher
