// Has every rank a GPU, and are these alike?
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

// Of GPUs of one name; less comes from what the driver keeps for ECC.
constexpr double kMostMemoryRatio = 1.1;

// Without a program nobody has said how many ranks there are to be: then hosts have only to agree.
void judge_counts(const CheckInput& input, Judgement* judgement) {
  struct Count {
    std::size_t ranks = 0, without = 0;
    std::set<int> gpus{};
  };
  std::vector<Count> counts(input.hosts.size());
  for (const PlannedRank& rank : input.plan.ranks) {
    Count& count = counts.at(static_cast<std::size_t>(rank.host));
    ++count.ranks;
    count.without += rank.gpus.empty() ? 1 : 0;
    count.gpus.insert(rank.gpus.begin(), rank.gpus.end());
  }
  std::vector<std::string> lacking;
  std::vector<std::pair<std::string, std::string>> facts;
  bool has_any = false;
  std::set<std::size_t> numbers;  // of GPUs of a host
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!input.is_reached(i)) continue;  // whose GPUs nobody knows
    has_any |= !counts[i].gpus.empty();
    numbers.insert(counts[i].gpus.size());
    if (counts[i].without > 0) lacking.push_back(input.hosts[i].name);
    facts.emplace_back(input.hosts[i].name, count_of(counts[i].gpus.size(), "GPU") + " for " +
                                                count_of(counts[i].ranks, "rank"));
  }
  if (!has_any || lacking.empty() || (!input.has_program && numbers.size() == 1)) return;
  judgement->add("gpu-missing", lacking, groups_as_text(group_facts(facts)));
}

// Of a MIG device its profile, too, where all of the job's are such.
std::string model_of(const RankGpu& gpu, bool are_all_parts) {
  if (are_all_parts && gpu.part != nullptr && !gpu.part->name.empty()) return gpu.part->name;
  return gpu.told != nullptr && !gpu.told->name.empty() ? gpu.told->name : gpu.facts.model;
}

std::uint64_t part_memory(const RankGpu& gpu, bool are_all_parts) {
  if (are_all_parts && gpu.part != nullptr) return gpu.part->memory_bytes;
  return gpu.told != nullptr ? gpu.told->memory_bytes : 0;
}

void judge_models(const CheckInput& input, Judgement* judgement) {
  const std::vector<RankGpu> gpus = gpus_of_ranks(input);
  const bool are_all_parts =
      std::all_of(gpus.begin(), gpus.end(), [](const RankGpu& gpu) { return gpu.facts.is_mig; });
  struct Range {
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
  };
  std::map<std::string, Range> memory;  // by model; 0 is not told
  for (const RankGpu& gpu : gpus) {
    Range& range = memory[model_of(gpu, are_all_parts)];
    const std::uint64_t bytes = part_memory(gpu, are_all_parts);
    if (bytes == 0) continue;
    range.least = std::min(range.least, bytes);
    range.most = std::max(range.most, bytes);
  }
  std::map<std::size_t, std::set<std::string>> models;  // by host
  std::set<std::string> all;
  for (const RankGpu& gpu : gpus) {
    std::string model = model_of(gpu, are_all_parts);
    const Range& range = memory[model];
    const std::uint64_t bytes = part_memory(gpu, are_all_parts);
    if (bytes > 0 &&
        static_cast<double>(range.most) > kMostMemoryRatio * static_cast<double>(range.least))
      model += " with " + format_bytes(bytes);
    models[gpu.host].insert(model);
    all.insert(model);
  }
  if (all.size() < 2) return;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [host, its] : models)
    facts.emplace_back(input.hosts[host].name, listed({its.begin(), its.end()}));
  const std::vector<FactGroup> groups = group_facts(facts);
  judgement->add("gpu-models-differ", groups.size() > 1 ? odd_hosts(groups) : groups[0].hosts,
                 groups_as_text(groups));
}

std::string why_untold(const CheckedHost& host) {
  if (!host.inventory)
    return host.is_asked_for_inventory ? "it has not answered in time"
                                       : "it was not asked (HVRUN_INVENTORY_TIMEOUT)";
  const std::string& problem = problem_of(*host.inventory);
  return problem.empty() ? "hvrun-inventory is not there, and came too late" : problem;
}

void add_gpu_gaps(const CheckInput& input, Judgement* judgement) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const std::size_t i : hosts_with_gpus(input)) {
    const CheckedHost& host = input.hosts[i];
    if (host.inventory && inventory_of_gpus(*host.inventory) != nullptr) continue;
    // After a failure only some hosts are asked.
    if (input.ranks_may_run && !host.is_asked_for_inventory) continue;
    reasons.emplace_back(host.name, why_untold(host));
  }
  for (const FactGroup& group : group_facts(reasons))
    judgement->not_probed(group.hosts,
                          "driver, health, use and links of its GPUs, for the driver has told "
                          "nothing: " +
                              group.fact);
}

void judge_gpus(const CheckInput& input, Judgement* judgement) {
  judge_counts(input, judgement);
  judge_models(input, judgement);
  add_gpu_gaps(input, judgement);
}

}  // namespace

const Probe kGpusProbe{
    "gpus",
    "the GPUs that ranks would have: how many, and of which model",
    {{"gpu-missing", Severity::kHarms,
      "some ranks would have a GPU, and others none, because their host has fewer that work",
      "a program that takes the GPU of its local rank ends there, or computes on the CPU while the "
      "others wait",
      "give each GPU one rank: --map-by gpu; or leave $HOST out"},
     {"gpu-models-differ", Severity::kHarms,
      "the GPUs of the job's ranks are of several models, or their memory differs by more than "
      "10 %",
      "each step waits for the slowest, and a batch must fit the smallest memory",
      "leave $HOST out, or have its line name GPUs of one model: $HOST gpus=0,1 in a hostfile"}},
    judge_gpus};

}  // namespace hv::launcher
