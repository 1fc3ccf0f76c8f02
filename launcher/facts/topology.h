// Where cores, GPUs and network adapters lie in this host: NUMA nodes and the PCI tree, from /sys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/core_mask.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The cores of which `usable` has a hardware thread, in the order of their nodes and then of their
// first thread, each with those of its threads that are usable. A host that tells no nodes has one.
// root: put before every path, for tests.
std::vector<wire::Core> read_cores(const CoreMask& usable, const std::string& root = "");

// RDMA adapters with a port that is up, by name.
std::vector<wire::RdmaAdapter> read_rdma(const std::string& root = "");

struct PciPlace {
  std::int32_t node = wire::kNoNode;
  std::string path;  // "pci0000:3a/0000:3a:00.0/0000:3b:00.0": the longer two have in common, the
                     // nearer they are; empty: not told
};
// folder: of a device in /sys.
PciPlace pci_place(const std::string& folder);

// "0-3,7" as the kernel writes lists; none: it is none. Numbers up to 65,535.
std::optional<std::vector<std::uint32_t>> parse_core_list(const std::string& text);

}  // namespace hv::launcher
