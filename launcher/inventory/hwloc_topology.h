// Packages, NUMA nodes, cores and caches of this host, and where its GPUs lie, as hwloc sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/wire/inventory.h"

namespace hv::launcher {

inline constexpr char kHwlocLibrary[] = "libhwloc.so.15";

struct DevicePlace {
  std::int32_t node = wire::kNoNode;  // none, too, where it is as near to several
  std::string cores{};                // near it: "0-23,48-71"
};

struct HwlocReading {
  wire::Topology topology{};
  std::map<std::string, DevicePlace> devices{};  // by PCI address, "0000:3b:00.0"
  std::string problem{};                         // which file was looked for, and why not
};

// with_devices: where they lie, too.
HwlocReading read_hwloc(const std::string& library, bool with_devices);

}  // namespace hv::launcher
