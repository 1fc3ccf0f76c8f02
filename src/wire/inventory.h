// What hvrun-inventory tells of a host: what only the driver and hwloc know, and /proc and /sys do
// not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hv::wire {

// What a host has, as its agent tells: from /proc, /sys and device nodes.
// A device or core of which the system does not tell a NUMA node.
inline constexpr std::int32_t kNoNode = -1;

struct Gpu {
  std::string pci_address;  // "0000:3b:00.0"
  std::string model;
  std::string uuid;         // "GPU-5a1e..."; empty: the driver does not tell it yet
  std::uint32_t minor = 0;  // /dev/nvidia<minor>
  std::int32_t node = kNoNode;
  std::string pci_path{};  // from the root of the PCI tree; empty: not told
  bool has_mig = false;    // it is cut into MIG instances
  void fields(auto& a) { a(pci_address, model, uuid, minor, node, pci_path, has_mig); }
};

// A core, and those of its hardware threads that this user's processes may run on.
struct Core {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> threads{};
  std::uint32_t package = 0;  // socket
  void fields(auto& a) { a(node, threads, package); }
};

struct RdmaAdapter {
  std::string name;  // "mlx5_0"
  std::int32_t node = kNoNode;
  std::string pci_path{};
  std::vector<std::uint32_t> ports{};  // that are up
  void fields(auto& a) { a(name, node, pci_path, ports); }
};

// What a host has, from /proc, /sys and device nodes.
struct Facts {
  std::string hostname;
  std::string machine;  // uname -m
  std::uint32_t usable_cores = 1;
  std::vector<Gpu> gpus;               // those whose device node opens
  std::vector<std::string> addresses;  // no loopback, no link-local; "10.0.0.1", "fd00::1"
  std::uint64_t memory_bytes = 0;
  std::vector<Core> cores{};  // in the order of their nodes
  std::vector<RdmaAdapter> rdma{};
  // CUDA_VISIBLE_DEVICES of the agent's environment, where it is set.
  bool has_visible_devices = false;
  std::string visible_devices{};
  bool has_pci_order = false;  // and its CUDA_DEVICE_ORDER says that indices there are in PCI order
  std::vector<std::string> interfaces{};  // "eth0": of each of the addresses
  void fields(auto& a) {
    a(hostname, machine, usable_cores, gpus, addresses, memory_bytes, cores, rdma,
      has_visible_devices, visible_devices, has_pci_order, interfaces);
  }
};

// Of the program's output on its pipe to the agent.
constexpr std::size_t kMaxInventoryBytes = 1 << 20;

struct GpuProcess {
  std::uint32_t pid = 0;           // as the driver numbers it
  std::uint64_t memory_bytes = 0;  // 0: not told
  std::string name{};              // "python3"; empty: not told
  void fields(auto& a) { a(pid, memory_bytes, name); }
};

// Who uses a device. What the driver does not tell is none, and other users' processes may be
// hidden.
struct GpuUse {
  std::optional<std::uint64_t> used_bytes{};    // without what the driver keeps for itself
  std::optional<std::uint32_t> busy_percent{};  // of the last second, about
  std::vector<GpuProcess> processes{};          // that compute there
  void fields(auto& a) { a(used_bytes, busy_percent, processes); }
};

// A part of a GPU that is one device for CUDA.
struct MigDevice {
  std::string uuid;  // "MIG-5a1e..."
  std::string name;  // "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::uint64_t memory_bytes = 0;
  bool may_open = true;  // its capability nodes
  GpuUse use{};
  void fields(auto& a) {
    a(uuid, name, gpu_instance, compute_instance, memory_bytes, may_open, use);
  }
};

struct GpuHealth {
  bool is_lost = false;                // it has fallen off the bus
  bool needs_reset = false;            // the driver refuses it before that
  bool is_pending = false;             // pages to retire or rows to remap at the next reset
  bool remap_failed = false;           // there are no spare rows left
  std::uint64_t volatile_errors = 0;   // uncorrected ECC errors since the driver's start
  std::uint64_t aggregate_errors = 0;  // over its lifetime
  void fields(auto& a) {
    a(is_lost, needs_reset, is_pending, remap_failed, volatile_errors, aggregate_errors);
  }
};

struct PcieLink {  // 0: not told
  std::uint32_t width = 0;
  std::uint32_t most_width = 0;  // of the GPU in its slot
  std::uint32_t generation = 0;  // an idle GPU lowers it
  std::uint32_t most_generation = 0;
  void fields(auto& a) { a(width, most_width, generation, most_generation); }
};

// Whether a GPU reads and writes another one's memory.
struct PeerAccess {
  std::string pci_address;  // of the other
  std::string refusal{};    // why not, "chipset not supported"; empty: it does
  void fields(auto& a) { a(pci_address, refusal); }
};

// An error that the driver has written to the kernel's log.
struct Xid {
  std::uint32_t number = 0;
  std::uint64_t seconds_ago = 0;
  std::string text{};  // "GPU has fallen off the bus."
  void fields(auto& a) { a(number, seconds_ago, text); }
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
  GpuUse use{};                 // in MIG mode its devices have their own
  std::string compute_mode{};   // "default", "exclusive", "prohibited"; empty: not told
  std::optional<bool> has_persistence{};
  std::optional<bool> has_ecc{};
  PcieLink pcie{};
  std::vector<PeerAccess> peers{};  // of the host's other GPUs those of which the driver tells it
  std::string slowdown{};           // why its clocks are held down: "heat"; empty: they are not
  std::vector<Xid> xids{};          // the last ones since the driver was loaded, the newest last
  void fields(auto& a) {
    a(pci_address, uuid, name, minor, memory_bytes, has_mig_mode, mig, links, health, node,
      near_cores, use, compute_mode, has_persistence, has_ecc, pcie, peers, slowdown, xids);
  }
};

// In numbers; 0: not known.
struct Topology {
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t cores = 0;
  std::uint32_t threads = 0;
  std::vector<std::string> caches{};  // "2 x L3 (32MB)", the largest first
  void fields(auto& a) { a(packages, numa_nodes, cores, threads, caches); }
};

struct Inventory {
  std::string build;   // of the program: the agent's own
  std::string driver;  // its version
  std::vector<InventoryGpu> gpus{};
  Topology topology{};
  // Each library on its own: which one, and why it told nothing. Empty: it did.
  std::string gpu_problem{};
  std::string topology_problem{};
  std::string cuda{};         // the newest that the driver is for, "13.0"; empty: not told
  double start_s = 0;         // that the driver took to start
  std::string xid_problem{};  // why the kernel's log could not be read; empty: it was
  void fields(auto& a) {
    a(build, driver, gpus, topology, gpu_problem, topology_problem, cuda, start_s, xid_problem);
  }
};

}  // namespace hv::wire
