// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/script_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "launcher/script/site_limits.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

int divided_up(int amount, int by) { return (amount + by - 1) / by; }

Partition choose_partition(const JobRequest& request, const Site& site) {
  if (request.partition.empty()) return site.partitions[0];
  if (const Partition* const found = site.find_partition(request.partition)) return *found;
  if (site.takes_any_partition) {
    Partition any = site.partitions[0];
    any.name = any.queue = request.partition;
    any.description.clear();
    return any;
  }
  std::vector<std::string> names;
  for (const Partition& partition : site.partitions) names.push_back(partition.name);
  const auto meant = nearest(request.partition, names);
  throw Error(ErrorKind::kUsage,
              "site " + site.name + " has no partition " + printable(request.partition),
              (meant ? *meant + "? One of " : "one of ") + join(names, ", "));
}

// How many ranks a node of the partition has room for; 0: unknown.
int room_of_node(const ScriptPlan& plan) {
  const Partition& partition = plan.partition;
  if (plan.gpus_per_rank > 0)
    return partition.gpus ? std::max(1, *partition.gpus / plan.gpus_per_rank) : 0;
  if (partition.cores == 0) return 0;
  return std::max(1, partition.cores / std::max(1, plan.cores_per_rank));
}

int ranks_on_each_node(const JobRequest& request, int room) {
  if (request.ranks_per_node) return *request.ranks_per_node;
  if (request.ranks && request.nodes) return divided_up(*request.ranks, *request.nodes);
  if (request.ranks && room > 0)
    return divided_up(*request.ranks, divided_up(*request.ranks, room));
  return room;
}

void refuse_contradictions(const JobRequest& request, const ScriptPlan& plan) {
  const auto room = static_cast<std::int64_t>(plan.nodes) * plan.ranks_per_node;
  const std::string layout = "--nodes " + std::to_string(plan.nodes) + " with " +
                             std::to_string(plan.ranks_per_node) + " ranks on each";
  if (plan.ranks > room)
    throw Error(ErrorKind::kUsage, layout + " has no room for -np " + std::to_string(plan.ranks),
                "leave one of -np, --nodes and --ranks-per-node out");
  const int needed = divided_up(plan.ranks, plan.ranks_per_node);
  if (request.nodes && needed < plan.nodes)
    throw Error(ErrorKind::kUsage,
                "-np " + std::to_string(plan.ranks) + " leaves some of --nodes " +
                    std::to_string(plan.nodes) + " without a rank",
                "--nodes " + std::to_string(needed) + ", or leave --nodes out");
}

void spread_ranks(const JobRequest& request, ScriptPlan* plan) {
  plan->ranks_per_node = ranks_on_each_node(request, room_of_node(*plan));
  if (plan->ranks_per_node == 0 && !request.ranks)
    throw Error(ErrorKind::kUsage, "nothing says how many ranks the job has",
                "-np N, or --nodes N with --ranks-per-node M");
  if (plan->ranks_per_node == 0) {  // the scheduler knows its nodes, and nobody else does
    plan->ranks = *request.ranks;
    return;
  }
  if (!request.ranks && !request.nodes)
    throw Error(ErrorKind::kUsage, "nothing says how many nodes the job has", "-np N or --nodes N");
  plan->nodes = request.nodes ? *request.nodes : divided_up(*request.ranks, plan->ranks_per_node);
  const auto room = static_cast<std::int64_t>(plan->nodes) * plan->ranks_per_node;
  if (!request.ranks && room > kMostRanksOfScript)
    throw Error(ErrorKind::kUsage, "the job would have " + std::to_string(room) + " ranks",
                "at most " + std::to_string(kMostRanksOfScript));
  plan->ranks = request.ranks ? *request.ranks : static_cast<int>(room);
  refuse_contradictions(request, *plan);
}

// A rank's part of the cores goes with its part of the GPUs, so that those who ask for one GPU
// leave the others' cores alone; on a node of one's own and without GPUs ranks share all.
int cores_of_rank(const JobRequest& request, const ScriptPlan& plan) {
  if (request.cores_per_rank) return *request.cores_per_rank;
  const Partition& partition = plan.partition;
  if (partition.cores == 0 || plan.ranks_per_node == 0) return 0;
  const int gpus = partition.gpus.value_or(0);
  const bool is_by_gpu = gpus > 0 && plan.gpus_per_rank > 0 && !partition.is_exclusive;
  if (!is_by_gpu && gpus == 0 && !request.ranks_per_node && !partition.is_exclusive) return 1;
  const std::int64_t all = partition.cores;
  const std::int64_t part = is_by_gpu ? all * plan.gpus_per_rank / gpus : all / plan.ranks_per_node;
  return static_cast<int>(std::max<std::int64_t>(1, part));
}

std::string account_of(const JobRequest& request, const Partition& partition) {
  const std::string& suffix = partition.account_suffix;
  if (request.account.empty() || suffix.empty()) return request.account;
  const bool has_one = request.account.find(suffix[0]) != std::string::npos;
  return has_one ? request.account : request.account + suffix;
}

}  // namespace

ScriptPlan plan_script(const JobRequest& request, const Site& site) {
  ScriptPlan plan;
  plan.partition = choose_partition(request, site);
  const bool has_gpus = plan.partition.gpus.value_or(0) > 0;
  plan.gpus_per_rank = request.gpus_per_rank.value_or(has_gpus ? 1 : 0);
  plan.cores_per_rank = request.cores_per_rank.value_or(0);
  spread_ranks(request, &plan);
  if (plan.gpus_per_rank > 0 && plan.ranks_per_node == 0)
    throw Error(ErrorKind::kUsage,
                "--gpus-per-rank: nothing says how many ranks, so how many GPUs, a node has",
                "--ranks-per-node N or --nodes N as well");
  plan.cores_per_rank = cores_of_rank(request, plan);
  plan.time = request.time ? request.time : site.default_time;
  plan.account = account_of(request, plan.partition);
  plan.qos = request.qos;
  if (plan.qos.empty() && !plan.partition.qos.empty()) plan.qos = plan.partition.qos[0];
  check_limits(request, site, plan);
  return plan;
}

}  // namespace hv::launcher
