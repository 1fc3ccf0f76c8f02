// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/script_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "launcher/script/job_time.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

struct BrokenLimit {
  std::string what;
  std::string instead;
};

std::string number(std::int64_t value) { return std::to_string(value); }

// What the whole job takes of what is limited.
struct Amount {
  std::int64_t nodes, gpus, cores;
};

Amount amount_of(const ScriptPlan& plan) {
  const std::int64_t places =
      plan.nodes > 0 ? std::int64_t{plan.nodes} * plan.ranks_per_node : plan.ranks;
  return {plan.nodes, places * plan.gpus_per_rank, places * plan.cores_per_rank};
}

// Where whole nodes hold more than what was asked for: " (9 nodes of 4 ranks, for 33)".
std::string how_so_many(const ScriptPlan& plan) {
  if (!plan.is_uneven()) return "";
  return " (" + std::to_string(plan.nodes) + " nodes of " + std::to_string(plan.ranks_per_node) +
         " ranks, for " + std::to_string(plan.ranks) + ")";
}

bool fits(const ScriptPlan& plan, const Qos& qos) {
  const Amount amount = amount_of(plan);
  return (!qos.max_time || !plan.time || *plan.time <= *qos.max_time) &&
         (qos.max_nodes == 0 || amount.nodes <= qos.max_nodes) &&
         (qos.max_gpus == 0 || amount.gpus <= qos.max_gpus) &&
         (qos.max_cores == 0 || amount.cores <= qos.max_cores);
}

// "8 ranks on a node take 16 GPUs (2 each), and a node has 4", and the most that there is room for.
std::optional<BrokenLimit> too_much_of(const char* what, const char* option, std::int64_t each,
                                       std::int64_t ranks, int there) {
  if (ranks * each <= there) return std::nullopt;
  const std::int64_t room = there / each;
  return BrokenLimit{count_of(ranks, "rank on a node takes", "ranks on a node take") + " " +
                         number(ranks * each) + " " + what + " (" + number(each) +
                         " each), and a node has " + number(there),
                     room > 0 ? "--ranks-per-node " + number(room) : option + number(there)};
}

void check_node(const JobRequest& request, const ScriptPlan& plan,
                std::vector<BrokenLimit>* broken) {
  const Partition& partition = plan.partition;
  const int ranks = std::max(1, plan.ranks_per_node);
  std::optional<BrokenLimit> gpus, cores;
  if (partition.gpus && plan.gpus_per_rank > 0)
    gpus = too_much_of("GPUs", "--gpus-per-rank ", plan.gpus_per_rank, ranks, *partition.gpus);
  if (partition.cores > 0)
    cores = too_much_of("cores", "--cores-per-rank ", std::max(1, plan.cores_per_rank), ranks,
                        partition.cores);
  if (gpus) broken->push_back(*gpus);
  // Cores that nobody asked for follow from the GPUs.
  if (cores && (!gpus || request.cores_per_rank)) broken->push_back(*cores);
}

void check_partition(const ScriptPlan& plan, std::vector<BrokenLimit>* broken) {
  const Partition& partition = plan.partition;
  if (partition.max_nodes > 0 && plan.nodes > partition.max_nodes)
    broken->push_back({number(plan.nodes) + " nodes are more than the " +
                           number(partition.max_nodes) + " of the partition",
                       "--nodes " + number(partition.max_nodes)});
  if (partition.max_time && plan.time && *plan.time > *partition.max_time)
    broken->push_back({"--time " + format_job_time(*plan.time) + " is more than the " +
                           format_job_time(*partition.max_time) + " of the partition",
                       "--time " + format_job_time(*partition.max_time)});
}

// Another of the partition's that takes the job as it is; empty: none.
std::string fitting_qos(const Site& site, const ScriptPlan& plan) {
  for (const std::string& name : plan.partition.qos) {
    const Qos* const qos = site.find_qos(name);
    if (qos && fits(plan, *qos)) return "--qos " + name;
  }
  return "";
}

// "--qos other" where one takes the job, else the most that this one does.
std::string instead_of(const std::string& other, const std::string& less) {
  return other.empty() ? less : other;
}

void check_qos(const Site& site, const ScriptPlan& plan, std::vector<BrokenLimit>* broken) {
  const std::vector<std::string>& takes = plan.partition.qos;
  if (!takes.empty() && std::find(takes.begin(), takes.end(), plan.qos) == takes.end()) {
    broken->push_back({"--qos " + printable(plan.qos) + " is not one of this partition",
                       "--qos " + join(takes, " or ")});
    return;
  }
  const Qos* const qos = site.find_qos(plan.qos);
  if (!qos) return;
  const Amount amount = amount_of(plan);
  const std::string other = fitting_qos(site, plan), of = " of " + qos->name;
  if (qos->max_time && plan.time && *plan.time > *qos->max_time) {
    const std::string most = format_job_time(*qos->max_time);
    broken->push_back({"--time " + format_job_time(*plan.time) + " is more than the " + most + of,
                       instead_of(other, "--time " + most)});
  }
  if (qos->max_nodes > 0 && amount.nodes > qos->max_nodes)
    broken->push_back(
        {number(amount.nodes) + " nodes are more than the " + number(qos->max_nodes) + of,
         instead_of(other, "--nodes " + number(qos->max_nodes))});
  if (qos->max_gpus > 0 && amount.gpus > qos->max_gpus)
    broken->push_back(
        {number(amount.gpus) + " GPUs" + how_so_many(plan) + " are more than the " +
             number(qos->max_gpus) + of,
         instead_of(other, "-np " + number(std::max(1, qos->max_gpus / plan.gpus_per_rank)))});
  if (qos->max_cores > 0 && amount.cores > qos->max_cores)
    broken->push_back(
        {number(amount.cores) + " cores" + how_so_many(plan) + " are more than the " +
             number(qos->max_cores) + of,
         instead_of(other, "-np " + number(std::max(1, qos->max_cores / plan.cores_per_rank)))});
}

void check_account(const Site& site, const ScriptPlan& plan, std::vector<BrokenLimit>* broken) {
  const std::string& suffix = plan.partition.account_suffix;
  const std::string& account = plan.account;
  if (account.empty()) {
    if (site.needs_account)
      broken->push_back({"a job needs an account", "--account NAME" + suffix});
    return;
  }
  if (suffix.empty() ||
      (account.size() > suffix.size() &&
       account.compare(account.size() - suffix.size(), suffix.size(), suffix) == 0))
    return;
  const std::string name = account.substr(0, account.find(suffix[0]));
  broken->push_back({"--account " + printable(account) + " is not of this partition's form",
                     "--account " + printable(name.empty() ? "NAME" : name) + suffix});
}

void check_wishes(const JobRequest& request, const Site& site, const ScriptPlan& plan,
                  std::vector<BrokenLimit>* broken) {
  if (request.signal && plan.time && request.signal->before >= *plan.time)
    broken->push_back({"--signal comes " + format_job_time(request.signal->before) +
                           " before the end of a job of " + format_job_time(*plan.time),
                       "a longer --time, or a later signal"});
  const bool is_slurm = site.scheduler == BatchScheduler::kSlurm;
  if (!is_slurm && !request.qos.empty())
    broken->push_back(
        {"--qos is Slurm's, and " + name_of(site.scheduler) + " has queues", "--partition NAME"});
  // PBS signals nobody: the script itself goes by its clock.
  const bool goes_by_clock = request.signal || request.requeues;
  if (site.scheduler == BatchScheduler::kPbs && goes_by_clock && !plan.time)
    broken->push_back(
        {"--signal and --requeue go by the time limit, which nothing states", "--time 2h"});
}

// Throws one Error(kUsage) that names all limits of the site that the job breaks.
void check_limits(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  std::vector<BrokenLimit> broken;
  check_node(request, plan, &broken);
  check_partition(plan, &broken);
  check_qos(site, plan, &broken);
  check_account(site, plan, &broken);
  check_wishes(request, site, plan, &broken);
  if (broken.empty()) return;
  std::vector<std::string> what, instead;
  for (const BrokenLimit& each : broken) {
    what.push_back(each.what);
    if (std::find(instead.begin(), instead.end(), each.instead) == instead.end())
      instead.push_back(each.instead);
  }
  throw Error(
      ErrorKind::kUsage,
      "site " + site.name + ", partition " + plan.partition.name + ": " + join(what, "; "),
      join(instead, "; ") + "; 'hvrun script --show-site " + site.name + "' prints the limits");
}

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
