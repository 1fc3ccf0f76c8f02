// Hosts with GPUs with which nothing is wrong, for tests to spoil.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "tests/unit/check/made_up_hosts.h"

namespace hv::launcher {

inline wire::Inventory& told_by(CheckInput& input, std::size_t host) {
  return input.hosts.at(host).inventory->inventory;
}
inline wire::InventoryGpu& gpu_of(CheckInput& input, std::size_t host, std::size_t gpu) {
  return told_by(input, host).gpus.at(gpu);
}

// The two ranks of each host have its GPUs 0 and 1; with less than two, rank 1 has none.
inline void give_gpus(CheckInput* input) {
  for (PlannedRank& rank : input->plan.ranks) {
    const auto host = static_cast<std::size_t>(rank.host);
    const int gpu = rank.identity.rank % 2;
    rank.gpus.clear();
    rank.gpu_names.clear();
    if (gpu >= static_cast<int>(input->hosts[host].facts->gpus.size())) continue;
    rank.gpus = {gpu};
    rank.gpu_names = {{gpu, gpu_of(*input, host, static_cast<std::size_t>(gpu)).uuid}};
  }
}

inline void add_gpu(CheckInput* input, std::size_t host) {
  CheckedHost& its = input->hosts[host];
  const std::size_t number = its.facts->gpus.size();
  char address[32];
  std::snprintf(address, sizeof address, "0000:%02zx:00.0", 0x10 * (host + 1) + number);
  wire::Gpu known;
  known.pci_address = address;
  known.model = "NVIDIA A100-SXM4-80GB";
  known.minor = static_cast<std::uint32_t>(number);
  its.facts->gpus.push_back(known);
  wire::InventoryGpu gpu;
  gpu.pci_address = address;
  gpu.uuid = "GPU-" + std::to_string(host) + "-" + std::to_string(number);
  gpu.name = known.model;
  gpu.memory_bytes = 80ull << 30;
  gpu.links = {"switch"};
  gpu.use.used_bytes = 0;
  gpu.use.busy_percent = 0;
  gpu.compute_mode = "default";
  gpu.has_persistence = gpu.has_ecc = true;
  gpu.pcie = {16, 16, 1, 4};
  told_by(*input, host).gpus.push_back(gpu);
  auto& gpus = told_by(*input, host).gpus;
  for (std::size_t i = 0; i < number; ++i) {
    gpus[i].peers.push_back({gpus[number].pci_address});
    gpus[number].peers.push_back({gpus[i].pci_address});
  }
}

// n1 to nN, with two GPUs, and two ranks each.
inline CheckInput gpu_hosts(std::size_t count) {
  CheckInput input = healthy_hosts(count);
  for (std::size_t host = 0; host < count; ++host) {
    input.hosts[host].inventory.emplace();
    told_by(input, host).driver = "580.82.07";
    told_by(input, host).cuda = "13.0";
    told_by(input, host).start_s = 0.1;
    add_gpu(&input, host);
    add_gpu(&input, host);
  }
  give_gpus(&input);
  return input;
}

}  // namespace hv::launcher
