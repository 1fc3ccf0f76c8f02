// Everything that hvrun-inventory tells, from both libraries, and as people read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/wire/inventory.h"

namespace hv::launcher {

struct InventorySources {
  std::string nvml;  // the libraries' files, or names that the system's loader finds
  std::string hwloc;
  std::string root{};  // before every other path, for tests
};

// What could be learnt; each library that tells nothing leaves a problem in its place. Blocks while
// the driver starts: a second and more.
wire::Inventory take_inventory(const InventorySources& sources);

// One object, indented, with a line end.
std::string inventory_as_json(const wire::Inventory& inventory);

}  // namespace hv::launcher
