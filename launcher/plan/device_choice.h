// Which GPUs and network adapters of a host are a rank's. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

struct GpuFacts {
  std::string uuid{};         // empty: the driver does not tell it yet
  std::optional<int> node{};  // NUMA node; none: not told
  std::string pci_path{};     // empty: not told
  std::string cuda_name{};    // in CUDA_VISIBLE_DEVICES: its UUID, else its index in PCI order
};

struct AdapterFacts {
  std::string name{};
  std::optional<int> node{};
  std::string pci_path{};
  std::vector<int> ports{};  // that are up
};

// What CUDA_VISIBLE_DEVICES leaves of a host's GPUs, in its order: indices in PCI order, UUIDs or
// their beginnings, and MIG devices, of which nothing is known but their name. As in CUDA, what
// follows a word that names none does not count.
std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& gpus, const std::string& visible);

// Indices of GPUs that are named by index or UUID. Throws Error(kUsage) for one that the host does
// not have; entry: the host, and who names them.
std::vector<int> find_gpus(const std::vector<std::string>& names, const HostEntry& entry,
                           const std::vector<GpuFacts>& gpus);

// The GPUs of a host that its ranks may use, in PCI order or in that of the host's line.
std::vector<int> usable_gpus(const HostEntry& entry, const std::vector<GpuFacts>& gpus);

// The same ones, so that NUMA nodes take turns.
std::vector<int> in_turn_by_node(const std::vector<int>& chosen, const std::vector<GpuFacts>& gpus);

// CUDA_VISIBLE_DEVICES for these.
std::string visible_devices(const std::vector<int>& chosen, const std::vector<GpuFacts>& gpus);

// The adapters nearest to a GPU in the PCI tree, those of its NUMA node if the tree is not told;
// without a GPU those of the rank's nodes. Empty: none is nearer than others.
std::vector<AdapterFacts> near_adapters(const std::vector<AdapterFacts>& adapters,
                                        const GpuFacts* gpu, const std::vector<int>& nodes);

}  // namespace hv::launcher
