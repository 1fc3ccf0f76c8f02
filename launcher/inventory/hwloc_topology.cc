// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/hwloc_topology.h"

#include <hwloc.h>

#include <cerrno>
#include <cstdio>

#include "src/base/environment.h"
#include "src/base/symbol.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// The layout of its objects is that of this header for all of version 2.
constexpr unsigned kVersion = 2;
constexpr std::size_t kMostCoreText = 4096;

// hwloc's functions; its header gives their types and nothing is linked.
struct Hwloc {
  decltype(&hwloc_get_api_version) version = nullptr;
  decltype(&hwloc_topology_init) init = nullptr;
  decltype(&hwloc_topology_set_components) set_components = nullptr;
  decltype(&hwloc_topology_set_type_filter) set_filter = nullptr;
  decltype(&hwloc_topology_load) load = nullptr;
  decltype(&hwloc_topology_destroy) destroy = nullptr;
  decltype(&hwloc_get_type_depth) depth_of = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count_at = nullptr;
  decltype(&hwloc_get_obj_by_depth) object_at = nullptr;
  decltype(&hwloc_bitmap_weight) weight = nullptr;
  decltype(&hwloc_bitmap_first) first = nullptr;
  decltype(&hwloc_bitmap_list_snprintf) list = nullptr;

  // The name of a function that is not there; "": all are.
  std::string find(void* library);
};

std::string Hwloc::find(void* library) {
  std::string missing;
  const auto need = [&](const char* symbol, auto* function) {
    if (!find_function(library, symbol, function) && missing.empty()) missing = symbol;
  };
  need("hwloc_get_api_version", &version);
  need("hwloc_topology_init", &init);
  need("hwloc_topology_set_components", &set_components);
  need("hwloc_topology_set_type_filter", &set_filter);
  need("hwloc_topology_load", &load);
  need("hwloc_topology_destroy", &destroy);
  need("hwloc_get_type_depth", &depth_of);
  need("hwloc_get_nbobjs_by_depth", &count_at);
  need("hwloc_get_obj_by_depth", &object_at);
  need("hwloc_bitmap_weight", &weight);
  need("hwloc_bitmap_first", &first);
  need("hwloc_bitmap_list_snprintf", &list);
  return missing;
}

std::uint32_t count_of(const Hwloc& hwloc, hwloc_topology_t topology, hwloc_obj_type_t type) {
  return hwloc.count_at(topology, hwloc.depth_of(topology, type));
}

std::vector<std::string> caches_of(const Hwloc& hwloc, hwloc_topology_t topology) {
  struct Level {
    hwloc_obj_type_t type;
    const char* name;
  };
  std::vector<std::string> caches;
  for (const Level& level :
       {Level{HWLOC_OBJ_L3CACHE, "L3"}, {HWLOC_OBJ_L2CACHE, "L2"}, {HWLOC_OBJ_L1CACHE, "L1"}}) {
    const int depth = hwloc.depth_of(topology, level.type);
    const hwloc_obj* const one = hwloc.object_at(topology, depth, 0);
    if (one == nullptr || one->attr == nullptr) continue;
    caches.push_back(std::to_string(hwloc.count_at(topology, depth)) + " x " + level.name + " of " +
                     format_bytes(one->attr->cache.size));
  }
  return caches;
}

DevicePlace place_of(const Hwloc& hwloc, const hwloc_obj* device) {
  const hwloc_obj* near = device;  // up to what has cores
  while (near != nullptr && near->cpuset == nullptr) near = near->parent;
  DevicePlace place;
  if (near == nullptr) return place;
  if (near->nodeset != nullptr && hwloc.weight(near->nodeset) == 1)
    place.node = hwloc.first(near->nodeset);
  char text[kMostCoreText];
  if (hwloc.list(text, sizeof text, near->cpuset) > 0) place.cores = text;
  return place;
}

std::map<std::string, DevicePlace> devices_of(const Hwloc& hwloc, hwloc_topology_t topology) {
  std::map<std::string, DevicePlace> devices;
  const int depth = hwloc.depth_of(topology, HWLOC_OBJ_PCI_DEVICE);
  for (unsigned i = 0; i < hwloc.count_at(topology, depth); ++i) {
    const hwloc_obj* const device = hwloc.object_at(topology, depth, i);
    const auto& pci = device->attr->pcidev;
    char address[48];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", static_cast<unsigned>(pci.domain),
                  pci.bus, pci.dev, pci.func);
    devices.emplace(address, place_of(hwloc, device));
  }
  return devices;
}

// As hwloc names their files.
constexpr char kUnusedPlugins[] =
    "hwloc_xml_libxml,hwloc_opencl,hwloc_gl,hwloc_cuda,hwloc_nvml,hwloc_rsmi,hwloc_levelzero";
constexpr char kPlugins[] =
    "hwloc_xml_libxml,hwloc_opencl,hwloc_gl,hwloc_cuda,hwloc_nvml,hwloc_rsmi,hwloc_levelzero,"
    "hwloc_pci";

// Its plugins for GPUs would wake the driver, which is asked already, and once. Looking at devices
// reads each one's registers, which takes milliseconds in a virtual machine.
bool load(const Hwloc& hwloc, hwloc_topology_t topology, bool with_devices) {
  for (const char* plugin : {"nvml", "cuda", "opencl", "gl", "rsmi", "levelzero"})
    (void)hwloc.set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
  const auto devices =
      with_devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE;
  return hwloc.set_filter(topology, HWLOC_OBJ_PCI_DEVICE, devices) == 0 &&
         hwloc.load(topology) == 0;
}

}  // namespace

HwlocReading read_hwloc(const std::string& library, bool with_devices) {
  // Before hwloc looks for its plugins: it would open each one, and with them libxml2, OpenCL and
  // X11, which takes longer than all the rest.
  set_in_process("HWLOC_PLUGINS_BLACKLIST", with_devices ? kUnusedPlugins : kPlugins);
  HwlocReading reading;
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    reading.problem = reason != nullptr ? reason : library + ": cannot be opened";
    return reading;
  }
  Hwloc hwloc;
  if (const std::string missing = hwloc.find(opened); !missing.empty()) {
    reading.problem = library + ": it has no " + missing;
    return reading;
  }
  if (hwloc.version() >> 16 != kVersion) {
    reading.problem = library + ": it is of version " + std::to_string(hwloc.version() >> 16) +
                      ", not of version 2";
    return reading;
  }
  hwloc_topology_t topology = nullptr;
  if (hwloc.init(&topology) != 0 || !load(hwloc, topology, with_devices)) {
    reading.problem = library + ": load the topology: " + errno_text(errno);
  } else {
    wire::Topology& told = reading.topology;
    told.packages = count_of(hwloc, topology, HWLOC_OBJ_PACKAGE);
    told.numa_nodes = count_of(hwloc, topology, HWLOC_OBJ_NUMANODE);
    told.cores = count_of(hwloc, topology, HWLOC_OBJ_CORE);
    told.threads = count_of(hwloc, topology, HWLOC_OBJ_PU);
    told.caches = caches_of(hwloc, topology);
    reading.devices = devices_of(hwloc, topology);
  }
  if (topology != nullptr) hwloc.destroy(topology);
  return reading;
}

}  // namespace hv::launcher
