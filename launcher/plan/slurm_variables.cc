// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_variables.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "launcher/allocation/host_expression.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr char kNodeList[] = "SLURM_JOB_NODELIST", kTasksEach[] = "SLURM_NTASKS_PER_NODE",
               kCpusByNode[] = "SLURM_JOB_CPUS_PER_NODE";

struct KeptVariable {
  const char* name;
  const char* job_name;  // has the job's own value
};
constexpr std::array<KeptVariable, 6> kKept{{{kNodeList, "HVRUN_JOB_NODELIST"},
                                             {"SLURM_JOB_NUM_NODES", "HVRUN_JOB_NUM_NODES"},
                                             {"SLURM_NTASKS", "HVRUN_JOB_NTASKS"},
                                             {"SLURM_TASKS_PER_NODE", "HVRUN_JOB_TASKS_PER_NODE"},
                                             {kTasksEach, "HVRUN_JOB_NTASKS_PER_NODE"},
                                             {kCpusByNode, "HVRUN_JOB_CPUS_PER_NODE"}}};

// "2(x3),1": Slurm's form of a number for each node.
std::string numbers_by_node(const std::vector<std::string>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t first = i;
    while (i < numbers.size() && numbers[i] == numbers[first]) ++i;
    parts.push_back(numbers[first] +
                    (i - first > 1 ? "(x" + std::to_string(i - first) + ")" : std::string()));
  }
  return join(parts, ",");
}

// The reverse; nullopt: these are not numbers for so many nodes.
std::optional<std::vector<std::string>> parse_numbers_by_node(const std::string& text,
                                                              std::size_t nodes) {
  std::vector<std::string> numbers;
  for (const std::string& part : split(text, ',')) {
    const std::size_t open = part.find("(x");
    const auto times = open == std::string::npos
                           ? std::optional<std::int64_t>(1)
                           : parse_integer(part.substr(open + 2, part.size() - open - 3));
    if (!times || *times < 1 || *times > static_cast<std::int64_t>(nodes - numbers.size()))
      return std::nullopt;
    numbers.insert(numbers.end(), static_cast<std::size_t>(*times), part.substr(0, open));
  }
  if (numbers.size() != nodes) return std::nullopt;
  return numbers;
}

std::vector<std::string> nodes_of(const std::string& expression) {
  std::vector<std::string> names;
  for (const HostEntry& node : parse_host_expression(expression, "$SLURM_JOB_NODELIST").entries)
    names.push_back(node.name);
  return names;
}

// The numbers of the hosts, of those of the job's nodes. nullopt: a host is no node of the job.
std::optional<std::string> choose_numbers(const std::string& text,
                                          const std::vector<std::string>& nodes,
                                          const std::vector<std::string>& hosts) {
  const auto numbers = parse_numbers_by_node(text, nodes.size());
  if (!numbers) return std::nullopt;
  std::map<std::string, std::string> number_of;
  for (std::size_t i = 0; i < nodes.size(); ++i) number_of[nodes[i]] = (*numbers)[i];
  std::vector<std::string> chosen;
  for (const std::string& host : hosts) {
    if (number_of.count(host) == 0) return std::nullopt;
    chosen.push_back(number_of[host]);
  }
  return numbers_by_node(chosen);
}

struct Changes {
  std::vector<std::pair<std::string, std::string>> set{};
  std::vector<std::string> unset{};
};

// The number of ranks of each host.
void add_counts(const std::vector<HostRanks>& hosts, const Environment& job, Changes* changes) {
  long ranks = 0;
  std::vector<std::string> counts;
  for (const HostRanks& host : hosts) {
    ranks += host.ranks;
    counts.push_back(std::to_string(host.ranks));
  }
  const std::string size = std::to_string(ranks), number = std::to_string(hosts.size()),
                    by_node = numbers_by_node(counts);
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    changes->set.emplace_back(name, size);
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES"})
    changes->set.emplace_back(name, number);
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    changes->set.emplace_back(name, by_node);
  // This variable acts as an option of an srun that a rank starts: a job without it gets none.
  if (!job.has(kTasksEach)) return;
  if (std::equal(counts.begin() + 1, counts.end(), counts.begin()))
    changes->set.emplace_back(kTasksEach, counts.front());
  else
    changes->unset.emplace_back(kTasksEach);
}

// The hosts themselves. Tools fold and sort node expressions; a list of single names keeps its
// order in all of them, also in `scontrol show hostnames`.
void add_hosts(const std::vector<HostRanks>& hosts, const Environment& job, Changes* changes) {
  std::vector<std::string> names;
  for (const HostRanks& host : hosts) names.push_back(host.name);
  const std::string list = join(names, ",");
  changes->set.emplace_back("SLURM_STEP_NODELIST", list);
  // salloc does not set it in a heterogeneous job.
  const std::string expression = job.get_or(kNodeList, "");
  if (expression.empty() && !job.has("SLURM_HET_SIZE")) return;
  const std::vector<std::string> nodes =
      expression.empty() ? std::vector<std::string>() : nodes_of(expression);
  if (nodes == names) return;
  changes->set.emplace_back(kNodeList, list);
  changes->set.emplace_back("SLURM_NODELIST", list);
  const auto cpus = job.get_filled(kCpusByNode);
  if (!cpus) return;
  if (auto chosen = choose_numbers(*cpus, nodes, names))
    changes->set.emplace_back(kCpusByNode, std::move(*chosen));
  else
    changes->unset.emplace_back(kCpusByNode);
}

}  // namespace

void set_slurm_variables(const std::vector<HostRanks>& hosts, CommonEnvironment* environment) {
  RankEnvironment& variables = environment->variables;
  if (!variables.has("SLURM_JOB_ID") || hosts.empty()) return;
  Changes changes;
  const Environment& job = variables.as_environment();
  add_counts(hosts, job, &changes);
  add_hosts(hosts, job, &changes);
  // In a rank that runs hvrun they are there: the job's own.
  for (const KeptVariable& kept : kKept)
    if (const auto value = job.get(kept.name)) variables.set_default(kept.job_name, *value);
  for (auto& [name, value] : changes.set)
    if (environment->exported.count(name) == 0) variables.set(name, std::move(value));
  for (const std::string& name : changes.unset)
    if (environment->exported.count(name) == 0) variables.unset(name);
}

std::vector<std::pair<std::string, std::string>> slurm_variables_of_rank(const RankIdentity& rank,
                                                                         int host) {
  return {{"SLURM_PROCID", std::to_string(rank.rank)},
          {"SLURM_LOCALID", std::to_string(rank.local_rank)},
          {"SLURM_NODEID", std::to_string(host)}};
}

const std::vector<std::string>& names_of_job_values() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const KeptVariable& kept : kKept) result.emplace_back(kept.job_name);
    return result;
  }();
  return names;
}

}  // namespace hv::launcher
