// Which GPUs and network adapters of a host are a rank's. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

// A device for CUDA: a whole GPU, or a part of one (MIG).
struct GpuFacts {
  std::string uuid{};         // empty: the driver does not tell it yet
  std::optional<int> node{};  // NUMA node; none: not told
  std::string pci_path{};     // empty: not told
  std::string cuda_name{};    // in CUDA_VISIBLE_DEVICES: its UUID, else its index in PCI order
  std::string pci_address{};  // of the whole GPU, as is what is above but the names
  std::string model{};
  std::optional<int> island{};  // GPUs of one island reach each other by NVLink; none: not told
  std::string fault{};          // why it can do no work; empty: it can
  std::string fix{};            // what to do about that
  // Of a MIG device only: the UUID of its GPU, and how CUDA named it before R470.
  bool is_mig = false;
  std::string gpu_uuid{};
  std::string old_name{};
};

// What people call each device's GPU: GPUs are counted, and the parts of one have its number.
std::vector<int> gpu_numbers(const std::vector<GpuFacts>& gpus);

// "GPU 6 of host a (0000:b3:00.0, GPU-5a1e...)".
std::string describe_gpu(const GpuFacts& gpu, int number, const std::string& host);

struct AdapterFacts {
  std::string name{};
  std::optional<int> node{};
  std::string pci_path{};
  std::vector<int> ports{};  // that are up
};

// What CUDA_VISIBLE_DEVICES leaves of a host's GPUs, in its order: indices in PCI order, UUIDs or
// their beginnings, MIG devices by either name; of a GPU that is cut into these all. As in CUDA,
// what follows a word that names none does not count. are_all_named: else one that is not found by
// its UUID may be there nevertheless, and nothing is known of it but its name.
std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& gpus, const std::string& visible,
                                   bool are_all_named = false);

// Places in gpus of those that are named by index or UUID; of a GPU that is cut into MIG devices
// all of these. Throws Error(kUsage) for one that the host does not have, or that can do no work;
// entry: the host, and who names them.
std::vector<int> find_gpus(const std::vector<std::string>& names, const HostEntry& entry,
                           const std::vector<GpuFacts>& gpus);

// The GPUs of a host that its ranks may use, in PCI order or in that of the host's line; without
// those that can do no work, unless the line names them.
std::vector<int> usable_gpus(const HostEntry& entry, const std::vector<GpuFacts>& gpus);

// The same ones, so that NUMA nodes take turns.
std::vector<int> in_turn_by_node(const std::vector<int>& chosen, const std::vector<GpuFacts>& gpus);

// The same ones, so that each successive `each` of them, a rank's, are of one NVLink island as far
// as that can be, and of few islands else.
std::vector<int> grouped_by_island(const std::vector<int>& chosen, std::size_t each,
                                   const std::vector<GpuFacts>& gpus);

// CUDA_VISIBLE_DEVICES for these.
std::string visible_devices(const std::vector<int>& chosen, const std::vector<GpuFacts>& gpus);

// The adapters nearest to a GPU in the PCI tree, those of its NUMA node if the tree is not told;
// without a GPU those of the rank's nodes. Empty: none is nearer than others.
std::vector<AdapterFacts> near_adapters(const std::vector<AdapterFacts>& adapters,
                                        const GpuFacts* gpu, const std::vector<int>& nodes);

}  // namespace hv::launcher
