// Slurm: $SLURM_JOB_NODELIST is a node expression; slots are the tasks that were asked for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/host_identity.h"
#include "launcher/allocation/host_names.h"
#include "launcher/allocation/host_words.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

const std::string kNodeList = "SLURM_JOB_NODELIST";

// "4(x3),2": 4, 4, 4, 2.
std::vector<int> tasks_by_node(const Place& place, std::size_t nodes) {
  std::vector<int> tasks;
  const std::string form = "numbers with repetitions, such as 4(x3),2";
  for_each_piece(place.text, ',', 0, place.text.size(), [&](std::size_t begin, std::size_t end) {
    const std::size_t open = std::min(place.text.substr(0, end).find("(x", begin), end);
    std::int64_t times = 1;
    if (open < end) {
      const bool is_closed = place.text[end - 1] == ')';
      const auto count = parse_integer(place.text.substr(open + 2, end - 1 - (open + 2)));
      if (!is_closed || !count || *count < 1 || *count > static_cast<std::int64_t>(kMostHosts))
        mistake(place, open, "this repetition is not understood", form);
      times = *count;
    }
    const int each = parse_slots(place, begin, open, 1);
    if (tasks.size() + static_cast<std::size_t>(times) > nodes)
      mistake(place, begin, "there are more numbers than nodes", form);
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), each);
  });
  if (tasks.size() != nodes)
    mistake(place, 0,
            "there are numbers for " + std::to_string(tasks.size()) + " of " +
                std::to_string(nodes) + " nodes",
            form);
  return tasks;
}

// The tasks of each node, where the job was given a number of tasks at all: without one Slurm
// counts cores, which says nothing of ranks. Inside a step, as the shell of salloc may be one, the
// numbers of tasks are the step's; what was asked for each node still is the job's, and so is what
// names a component (suffix).
void state_slots(const Environment& environment, const std::string& suffix, HostList* list) {
  const bool is_in_step = suffix.empty() && environment.has("SLURM_STEP_NUM_TASKS");
  const std::string by_node = "SLURM_TASKS_PER_NODE" + suffix;
  const auto tasks = environment.get(by_node);
  if (!is_in_step && tasks &&
      (environment.has("SLURM_NTASKS" + suffix) || environment.has("SLURM_NPROCS" + suffix))) {
    const std::vector<int> slots = tasks_by_node({"$" + by_node, 0, *tasks}, list->entries.size());
    for (std::size_t i = 0; i < slots.size(); ++i) list->entries[i].slots = slots[i];
    return;
  }
  const std::string for_each_node = "SLURM_NTASKS_PER_NODE" + suffix;
  const auto each = environment.get(for_each_node);
  if (!each) return;
  const int slots = parse_slots({"$" + for_each_node, 0, *each}, 0, each->size(), 1);
  for (HostEntry& entry : list->entries) entry.slots = slots;
}

// Each of srun's tasks would be an hvrun that starts all ranks.
void refuse_many_tasks(const Environment& environment) {
  if (environment.has("HVRUN_RANK")) return;  // a rank has the number of ranks there
  const auto tasks = parse_integer(environment.get_or("SLURM_STEP_NUM_TASKS", "1"));
  if (!tasks || *tasks <= 1) return;
  throw Error(ErrorKind::kUsage,
              "srun has started " + std::to_string(*tasks) +
                  " hvrun at once, each of which would start all ranks",
              "write hvrun without srun in the batch script: it starts a process on each node by "
              "itself; or srun -n 1");
}

// A heterogeneous job has several node expressions, others one.
std::vector<std::string> suffixes_of_job(const Environment& environment) {
  std::vector<std::string> suffixes;
  for (int component = 0; component < slurm_components(environment); ++component)
    suffixes.push_back(suffix_of_slurm_component(component));
  const bool are_listed = !suffixes.empty() && environment.has(kNodeList + suffixes.front());
  return are_listed ? suffixes : std::vector<std::string>{""};
}

// The node expression of the job in which this process runs, if it runs in one.
std::optional<std::string> nodes_of_job(const Environment& environment) {
  if (!environment.has("SLURM_JOB_ID")) return std::nullopt;
  // In a rank of hvrun's $SLURM_JOB_NODELIST names the hosts with ranks.
  if (auto all = environment.get_filled("HVRUN_JOB_NODELIST")) return all;
  std::vector<std::string> nodes;
  for (const std::string& suffix : suffixes_of_job(environment))
    if (auto some = environment.get_filled(kNodeList + suffix)) nodes.push_back(std::move(*some));
  return nodes.empty() ? std::nullopt : std::optional<std::string>(join(nodes, ","));
}

// A node of several components has the slots of all.
void add_component(const HostList& component, HostList* list) {
  for (const HostEntry& node : component.entries) {
    const auto same =
        std::find_if(list->entries.begin(), list->entries.end(),
                     [&node](const HostEntry& entry) { return entry.name == node.name; });
    if (same == list->entries.end())
      list->entries.push_back(node);
    else if (same->slots && node.slots)
      *same->slots += *node.slots;
  }
}

std::set<std::string> node_names(const std::string& nodes) {
  std::set<std::string> names;
  for (const HostEntry& node : parse_host_expression(nodes, "$SLURM_JOB_NODELIST").entries)
    names.insert(node.name);
  return names;
}

bool has_words_for_ssh(const HostEntry& host) {
  return !host.user.empty() || host.port != 0 || !host.identity.empty() || !host.address.empty();
}

}  // namespace

std::optional<HostList> hosts_of_slurm(const Environment& environment, const ReadFile&) {
  const auto nodes = nodes_of_job(environment);
  if (!nodes) return std::nullopt;
  refuse_many_tasks(environment);
  HostList list;
  for (const std::string& suffix : suffixes_of_job(environment)) {
    const std::string name = kNodeList + suffix;
    const auto expression = environment.get_filled(name);
    if (!expression) continue;
    HostList component = parse_host_expression(*expression, "$" + name);
    state_slots(environment, suffix, &component);
    if (list.entries.empty())
      list = std::move(component);
    else
      add_component(component, &list);
  }
  return list;
}

HostList with_slurm_names(HostList hosts, const Environment& environment,
                          const AddressLookup& look_up) {
  const auto expression = nodes_of_job(environment);
  if (!expression || hosts.this_machine) return hosts;
  const HostList nodes = parse_host_expression(*expression, "$SLURM_JOB_NODELIST");
  HostIndex index(nodes, look_up);
  std::vector<std::string> names;
  for (const HostEntry& host : hosts.entries)
    if (!has_words_for_ssh(host)) names.push_back(host.name);
  index.expect(names);
  std::map<std::string, HostEntry*> named;  // by the node's name
  for (HostEntry& host : hosts.entries) {
    if (has_words_for_ssh(host)) continue;
    const Place place{host.origin, 0, host.name};
    const HostEntry* const node = index.find("", host.name, place, 0);
    if (node == nullptr) continue;
    const auto [first, is_first] = named.emplace(node->name, &host);
    if (!is_first)
      mistake(place, 0,
              "'" + host.name + "' is node " + node->name +
                  " of this Slurm job, and so is a host "
                  "before it (" +
                  first->second->origin + ")",
              "each node once");
  }
  for (const auto& [name, host] : named) host->name = name;
  return hosts;
}

bool are_nodes_of_slurm_job(const HostList& hosts, const Environment& environment) {
  const auto nodes = nodes_of_job(environment);
  if (!nodes || hosts.this_machine) return false;
  const std::set<std::string> names = node_names(*nodes);
  return std::all_of(hosts.entries.begin(), hosts.entries.end(), [&](const HostEntry& host) {
    return names.count(host.name) > 0 && !has_words_for_ssh(host);
  });
}

void refuse_strangers_to_slurm_job(const HostList& hosts, const Environment& environment) {
  const auto nodes = nodes_of_job(environment);
  if (!nodes || hosts.this_machine) return;
  const std::set<std::string> names = node_names(*nodes);
  std::vector<std::string> strangers;
  const bool is_alone = hosts.entries.size() == 1;
  for (const HostEntry& host : hosts.entries) {
    // This machine may be a login node: its ranks run there, but next to no node of the job.
    const bool may_be_elsewhere = is_own_name(host.name) ? is_alone : is_address(host.name);
    if (!has_words_for_ssh(host) && !may_be_elsewhere && names.count(host.name) == 0)
      strangers.push_back(printable(host.name));
  }
  if (strangers.empty()) return;
  const auto meant = nearest(strangers[0], {names.begin(), names.end()}, 1);
  throw Error(ErrorKind::kUsage,
              hosts_text(strangers) + word_for(strangers.size(), " is no node", " are no nodes") +
                  " of this Slurm job (nodes: " + printable(*nodes) + ")",
              (meant ? "did you mean " + *meant + "? " : std::string()) +
                  "leave out -H and --hostfile for all of the job's nodes; --spawner ssh goes to "
                  "other hosts, by SSH");
}

}  // namespace hv::launcher
