// What a host has, as its agent tells: from /proc, /sys and device nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hv::wire {

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

}  // namespace hv::wire
