// Do the GPUs of a host reach each other and the host as well as those of the other hosts do?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "launcher/check/gpus/rank_gpus.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "launcher/plan/gpu_inventory.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

void judge_width(const CheckInput& input, Judgement* judgement) {
  GpuFindings narrow(input);
  for (const RankGpu& gpu : gpus_of_ranks(input)) {
    if (gpu.told == nullptr) continue;
    const wire::PcieLink& link = gpu.told->pcie;
    if (link.width > 0 && link.width < link.most_width)
      narrow.add(gpu, "(" + gpu.facts.pci_address + ") has " + std::to_string(link.width) + " of " +
                          std::to_string(link.most_width) + " PCIe lanes");
  }
  narrow.tell("pcie-narrow", judgement);
}

// Whole GPUs of ranks by host, where the host has told of all of them and there are several.
std::map<std::size_t, std::vector<RankGpu>> groups_of_gpus(const CheckInput& input) {
  std::map<std::size_t, std::vector<RankGpu>> groups;
  for (const RankGpu& gpu : gpus_of_ranks(input)) groups[gpu.host].push_back(gpu);
  std::erase_if(groups, [](const auto& one) {
    const std::vector<RankGpu>& gpus = one.second;
    return gpus.size() < 2 || std::any_of(gpus.begin(), gpus.end(), [](const RankGpu& gpu) {
             return gpu.told == nullptr || gpu.facts.is_mig;
           });
  });
  return groups;
}

struct Peers {
  std::size_t told = 0;         // pairs
  std::string first_refused{};  // "GPU 0 and GPU 3: the chipset does not support it"
};

Peers peers_of(const std::vector<RankGpu>& gpus) {
  Peers peers;
  for (const RankGpu& from : gpus)
    for (const RankGpu& to : gpus)
      for (const wire::PeerAccess& peer : from.told->peers) {
        if (peer.pci_address != to.facts.pci_address) continue;
        ++peers.told;
        if (peers.first_refused.empty() && !peer.refusal.empty())
          peers.first_refused = from.name() + " and " + to.name() + ": " + printable(peer.refusal);
      }
  return peers;
}

// Only where another host shows that it could be otherwise.
void judge_peers(const CheckInput& input, Judgement* judgement) {
  std::vector<std::string> hosts;
  std::vector<std::pair<std::string, std::string>> facts;
  bool has_better = false;
  for (const auto& [host, gpus] : groups_of_gpus(input)) {
    const Peers peers = peers_of(gpus);
    if (peers.told == 0) continue;
    has_better |= peers.first_refused.empty();
    if (peers.first_refused.empty()) continue;
    hosts.push_back(input.hosts[host].name);
    facts.emplace_back(hosts.back(), "no peer access between " + peers.first_refused);
  }
  if (has_better && !hosts.empty())
    judgement->add("peer-access-lacking", hosts, groups_as_text(group_facts(facts)));
}

// Into how many parts NVLinks leave these GPUs; 1: they join them all.
std::size_t parts_of(const std::vector<RankGpu>& gpus) {
  const std::vector<int> islands = islands_of(gpus[0].inventory->gpus);
  std::set<int> joined;
  std::size_t alone = 0;
  for (const RankGpu& gpu : gpus) {
    const int island = islands[static_cast<std::size_t>(gpu.told - gpu.inventory->gpus.data())];
    if (island < 0)
      ++alone;
    else
      joined.insert(island);
  }
  return joined.size() + alone;
}

std::string parts_in_words(std::size_t parts, std::size_t gpus) {
  if (parts == 1) return "NVLink joins its GPUs";
  if (parts == gpus) return "no NVLink between its GPUs";
  return "NVLink leaves its " + std::to_string(gpus) + " GPUs in " + std::to_string(parts) +
         " parts";
}

// A host is worse than one that has as many GPUs in use, or more, in fewer parts.
void judge_nvlink(const CheckInput& input, Judgement* judgement) {
  struct Parts {
    std::size_t host, gpus, parts;
  };
  std::vector<Parts> all;
  for (const auto& [host, gpus] : groups_of_gpus(input))
    all.push_back({host, gpus.size(), parts_of(gpus)});
  std::vector<std::string> worse;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const Parts& one : all) {
    const std::string& name = input.hosts[one.host].name;
    facts.emplace_back(name, parts_in_words(one.parts, one.gpus));
    if (std::any_of(all.begin(), all.end(), [&one](const Parts& other) {
          return other.gpus >= one.gpus && other.parts < one.parts;
        }))
      worse.push_back(name);
  }
  if (!worse.empty()) judgement->add("nvlink-lacking", worse, groups_as_text(group_facts(facts)));
}

void judge_links(const CheckInput& input, Judgement* judgement) {
  judge_width(input, judgement);
  judge_peers(input, judgement);
  judge_nvlink(input, judgement);
}

}  // namespace

const Probe kGpuLinksProbe{
    "gpu-links",
    "PCIe links, peer access and NVLinks of ranks' GPUs",
    {{"pcie-narrow", Severity::kHarms,
      "the PCIe link of a rank's GPU has fewer lanes than GPU and slot could have (idle GPUs lower "
      "the generation, never the width)",
      "what it copies and exchanges takes so many times longer, and all ranks wait for it",
      "have the GPU, or its riser, reseated: ssh $HOST sudo lspci -vv -s $GPU shows LnkSta"},
     {"peer-access-lacking", Severity::kHarms,
      "two GPUs of ranks on a host do not read and write each other's memory, and all of those on "
      "another host do",
      "NCCL takes the way through the host's memory there, and all ranks wait for it",
      "see 'ssh $HOST nvidia-smi topo -p2p r'; PCIe's ACS and an IOMMU keep GPUs apart, and are "
      "switched off in the firmware"},
     {"nvlink-lacking", Severity::kHarms,
      "NVLinks join the GPUs of ranks on a host in more parts than they do as many on another host",
      "NCCL takes PCIe there, and all ranks wait for it",
      "see 'ssh $HOST nvidia-smi nvlink --status'; with NVSwitch: ssh $HOST sudo systemctl restart "
      "nvidia-fabricmanager"}},
    judge_links};

}  // namespace hv::launcher
