// Hosts that nobody has, as their agents would tell of them: for tests of what is drawn and told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/host_expression.h"
#include "launcher/check/check_input.h"

namespace hv::launcher::made_up {

enum class Links { kNone, kSwitch, kPairs };

struct Shape {
  int nodes = 2;
  int cores = 8;  // of a node
  int gpus = 2;   // of a node
  Links links = Links::kSwitch;
  std::string model = "NVIDIA H100 80GB HBM3";
  std::uint64_t memory_bytes = std::uint64_t{503} << 30;
};

constexpr int kNvlinks = 18;  // to switches, of each GPU
constexpr int kPairLinks = 4;

inline std::string pci_address(int gpu) { return "0000:" + std::to_string(20 + gpu) + ":00.0"; }

// Two GPUs and an adapter of a node are below one root port each.
inline wire::Facts facts_of(const Shape& shape) {
  wire::Facts facts;
  facts.memory_bytes = shape.memory_bytes;
  facts.usable_cores = static_cast<std::uint32_t>(shape.nodes * shape.cores);
  for (int node = 0; node < shape.nodes; ++node) {
    const std::string root = "pci0000:" + std::to_string(node);
    for (int core = 0; core < shape.cores; ++core)
      facts.cores.push_back({static_cast<std::uint32_t>(node),
                             {static_cast<std::uint32_t>(node * shape.cores + core)},
                             static_cast<std::uint32_t>(node)});
    for (int i = 0; i < shape.gpus; ++i) {
      const int gpu = node * shape.gpus + i;
      facts.gpus.push_back({pci_address(gpu), shape.model, "GPU-" + std::to_string(gpu),
                            static_cast<std::uint32_t>(gpu), node,
                            root + "/port" + std::to_string(i / 2) + "/" + pci_address(gpu)});
    }
    if (shape.gpus > 0)
      facts.rdma.push_back({"mlx5_" + std::to_string(node),
                            node,
                            root + "/port0/mlx5_" + std::to_string(node),
                            {1}});
  }
  return facts;
}

inline wire::InventoryReply inventory_of(const wire::Facts& facts, Links links) {
  wire::InventoryReply reply;
  reply.inventory.topology = {2, 2, 16, 16, {"2 x L3 (32MB)"}};
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    wire::InventoryGpu& gpu = reply.inventory.gpus.emplace_back();
    gpu.pci_address = facts.gpus[i].pci_address;
    gpu.uuid = facts.gpus[i].uuid;
    gpu.memory_bytes = std::uint64_t{80} << 30;
    if (links == Links::kSwitch)
      for (int link = 0; link < kNvlinks; ++link)
        gpu.links.push_back("0000:f" + std::to_string(link % 4) + ":00.0");
    if (links == Links::kPairs) gpu.links.assign(kPairLinks, facts.gpus.at(i ^ 1).pci_address);
  }
  return reply;
}

// hosts: "n[1-8]:4". All of them equal, and asked for ranks by slot.
inline CheckInput check_of(const std::string& hosts, const Shape& shape = {},
                           JobSpec spec = JobSpec{}) {
  spec.programs = {{{"./train"}, "/here"}};
  const HostList list = parse_host_expression(hosts);
  CheckInput input;
  const wire::Facts facts = facts_of(shape);
  const wire::InventoryReply inventory = inventory_of(facts, shape.links);
  const HostFacts known = host_facts(facts, &inventory.inventory);
  input.plan =
      make_plan(spec, list, std::vector<std::optional<HostFacts>>(list.entries.size(), known));
  input.spec = std::move(spec);
  input.seconds = 0.8;
  for (const PlannedHost& host : input.plan.hosts) {
    CheckedHost& checked = input.hosts.emplace_back();
    checked.name = host.name;
    checked.facts = facts;
    checked.inventory = inventory;
  }
  for (const PlannedRank& rank : input.plan.ranks)
    input.hosts[static_cast<std::size_t>(rank.host)].ranks.push_back(rank.identity.rank);
  return input;
}

// All have tried each other; what the first three hosts measured of the next ones.
inline void add_pairs(CheckInput* input) {
  for (std::size_t from = 0; from < input->hosts.size(); ++from) {
    for (std::size_t to = 0; to < input->hosts.size(); ++to) {
      if (from == to) continue;
      PairFacts pair{from, to, {"10.0.0.1"}, {"10.0.0.1"}};
      if (from < 3 && to > from && to < from + 3) {
        pair.address = "10.0.0.1";
        pair.measure.emplace();
        pair.measure->megabytes_per_s = from == 1 ? 118 : 11000.0 + 100 * static_cast<double>(to);
        pair.measure->round_trip_us = 12.0 + static_cast<double>(from + to);
      }
      input->pairs.push_back(pair);
    }
  }
}

}  // namespace hv::launcher::made_up
