// What hvrun-inventory tells of a host: what only the driver and hwloc know, and /proc and /sys do
// not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/facts.h"

namespace hv::wire {

// Of the program's output on its pipe to the agent.
constexpr std::size_t kMaxInventoryBytes = 1 << 20;

// A part of a GPU that is one device for CUDA.
struct MigDevice {
  std::string uuid;  // "MIG-5a1e..."
  std::string name;  // "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::uint64_t memory_bytes = 0;
  bool may_open = true;  // its capability nodes
  template <class A>
  void fields(A& a) {
    a(uuid);
    a(name);
    a(gpu_instance);
    a(compute_instance);
    a(memory_bytes);
    a(may_open);
  }
};

struct GpuHealth {
  bool is_lost = false;                // it has fallen off the bus
  bool needs_reset = false;            // the driver refuses it before that
  bool is_pending = false;             // pages to retire or rows to remap at the next reset
  bool remap_failed = false;           // there are no spare rows left
  std::uint64_t volatile_errors = 0;   // uncorrected ECC errors since the driver's start
  std::uint64_t aggregate_errors = 0;  // over its lifetime
  template <class A>
  void fields(A& a) {
    a(is_lost);
    a(needs_reset);
    a(is_pending);
    a(remap_failed);
    a(volatile_errors);
    a(aggregate_errors);
  }
};

struct InventoryGpu {
  std::string pci_address;  // as in Gpu
  std::string uuid;
  std::string name;
  std::uint32_t minor = 0;
  std::uint64_t memory_bytes = 0;
  bool has_mig_mode = false;  // switched on; then there may still be no device
  std::vector<MigDevice> mig{};
  std::vector<std::string> links{};  // far ends of its NVLinks: PCI addresses of GPUs and switches
  GpuHealth health{};
  std::int32_t node = kNoNode;  // the next three: as hwloc sees it
  std::string near_cores{};     // "0-23,48-71"
  template <class A>
  void fields(A& a) {
    a(pci_address);
    a(uuid);
    a(name);
    a(minor);
    a(memory_bytes);
    a(has_mig_mode);
    a(mig);
    a(links);
    a(health);
    a(node);
    a(near_cores);
  }
};

// In numbers; 0: not known.
struct Topology {
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t cores = 0;
  std::uint32_t threads = 0;
  std::vector<std::string> caches{};  // "2 x L3 (32MB)", the largest first
  template <class A>
  void fields(A& a) {
    a(packages);
    a(numa_nodes);
    a(cores);
    a(threads);
    a(caches);
  }
};

struct Inventory {
  std::string build;   // of the program: the agent's own
  std::string driver;  // its version
  std::vector<InventoryGpu> gpus{};
  Topology topology{};
  // Each library on its own: which one, and why it told nothing. Empty: it did.
  std::string gpu_problem{};
  std::string topology_problem{};
  template <class A>
  void fields(A& a) {
    a(build);
    a(driver);
    a(gpus);
    a(topology);
    a(gpu_problem);
    a(topology_problem);
  }
};

}  // namespace hv::wire
