// The GPUs of this host as the driver's library tells of them. Blocks while the driver initialises
// them: a second and more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/wire/inventory.h"

namespace hv::launcher {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

struct NvmlReading {
  std::string driver{};  // its version
  std::string cuda{};    // as in Inventory
  double start_s = 0;    // that its initialisation took
  std::vector<wire::InventoryGpu> gpus{};
  std::string problem{};  // which file was looked for, and why it told nothing
};

// known: by /proc. One of these that the driver does not list is asked for by its address, so that
// a GPU that is lost has a place. root: before paths, not before library; for tests.
NvmlReading read_nvml(const std::string& library, const std::vector<wire::Gpu>& known,
                      const std::string& root = "");

}  // namespace hv::launcher
