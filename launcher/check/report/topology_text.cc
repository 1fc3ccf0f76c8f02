// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_names.h"
#include "launcher/check/report/topology.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "launcher/check/groups.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostListedNodes = 8;   // shown of a host
constexpr std::size_t kMostNodesOfTwo = 4;    // of which each has a line for its ranks
constexpr std::size_t kMostBindings = 8;      // told one by one
constexpr std::size_t kMostHostsOfRanks = 4;  // told one by one
constexpr std::size_t kMostSets = 6;          // of GPUs, for one kind of link
constexpr double kGibibyte = 1 << 30;

// "core 3", "cores 0-3"; "": none
std::string numbers_of(const std::string& what, std::vector<int> numbers) {
  if (numbers.empty()) return "";
  std::sort(numbers.begin(), numbers.end());
  return ranges_of(what, numbers);
}

void add_words(const std::string& words, std::vector<std::string>* list) {
  if (!words.empty()) list->push_back(words);
}

// "core 0", "cores 0 | 1 | 2". A value that all have is named once.
std::string one_by_one(const std::string& what, const std::vector<std::string>& values) {
  const bool are_same = std::all_of(values.begin(), values.end(),
                                    [&](const std::string& value) { return value == values[0]; });
  std::vector<std::string> shown = are_same ? std::vector{values[0]} : values;
  if (shown.size() > kMostBindings) {
    shown.erase(shown.begin() + kMostBindings / 2, shown.end() - 1);
    shown.insert(shown.end() - 1, "...");
  }
  const bool is_one = std::all_of(shown.begin(), shown.end(), [](const std::string& value) {
    return value.find_first_of("-,") == std::string::npos || value == "-";
  });
  return word_for(is_one ? 1 : 2, what) + " " + join(shown, " | ");
}

std::vector<int> threads_of(const TopologyNode& node) {
  std::vector<int> threads;
  for (const TopologyCore& core : node.cores)
    threads.insert(threads.end(), core.threads.begin(), core.threads.end());
  return threads;
}

std::string node_in_words(const TopologyHost& host, const TopologyNode& node) {
  std::vector<int> gpus;
  for (const std::size_t gpu : node.gpus) gpus.push_back(host.gpus[gpu].number);
  std::vector<std::string> parts;
  add_words(numbers_of("core", threads_of(node)), &parts);
  add_words(numbers_of("GPU", gpus), &parts);
  add_words(fold_host_names(node.adapters), &parts);
  return (node.number ? "node " + std::to_string(*node.number) : "node not told") + ": " +
         join(parts, ", ");
}

// With numbers among the ranks of all, or of each host.
std::string describe_ranks(const TopologyHost& host, const std::vector<int>& ranks, bool is_local) {
  std::vector<const TopologyRank*> chosen;
  std::vector<int> numbers;
  for (const TopologyRank& rank : host.ranks) {
    if (std::find(ranks.begin(), ranks.end(), rank.rank) == ranks.end()) continue;
    chosen.push_back(&rank);
    numbers.push_back(is_local ? rank.local_rank : rank.rank);
  }
  return numbers_of(is_local ? "local rank" : "rank", numbers) + ": " + bindings_in_words(chosen);
}

// A link's rank among others: the fastest first, and of NVLinks the most.
using Kind = std::pair<GpuPath, int>;
Kind kind_of(const GpuLink& link) { return {link.path, -link.nvlinks}; }

// Sets of GPUs of which each two have such a link or a faster one: "{0-3} {4-7}". Greedy: each
// takes a pair that is in none, and all who fit.
std::string sets_in_words(const TopologyHost& host, const Kind& kind) {
  std::set<std::pair<std::size_t, std::size_t>> links, left;
  for (const GpuLink& link : host.links) {
    if (kind_of(link) <= kind) links.insert({link.from, link.to});
    if (kind_of(link) == kind) left.insert({link.from, link.to});
  }
  std::vector<std::string> sets;
  while (!left.empty() && sets.size() < kMostSets) {
    std::vector<std::size_t> members{left.begin()->first, left.begin()->second};
    for (std::size_t next = 0; next < host.gpus.size(); ++next) {
      const bool fits = std::all_of(members.begin(), members.end(), [&](std::size_t member) {
        return links.count(std::minmax(member, next)) != 0;
      });
      if (fits) members.push_back(next);
    }
    std::sort(members.begin(), members.end());
    std::vector<int> numbers;
    for (const std::size_t one : members) {
      numbers.push_back(host.gpus[one].number);
      for (const std::size_t other : members) left.erase({one, other});
    }
    sets.push_back("{" + format_ranges(numbers) + "}");
  }
  return join(sets, " ") + (left.empty() ? "" : " ...");
}

// The slowest comes last, as the rest.
std::string links_in_words(const TopologyHost& host) {
  std::set<Kind> kinds;
  for (const GpuLink& link : host.links) kinds.insert(kind_of(link));
  std::vector<std::string> parts;
  for (const Kind& kind : kinds) {
    const std::string name =
        path_in_words(kind.first) + (kind.second == 0 ? "" : " x" + std::to_string(-kind.second));
    if (kind == *kinds.rbegin()) {
      parts.push_back(kinds.size() == 1 ? name + " between all" : "else " + name);
    } else {
      parts.push_back(name + " " + sets_in_words(host, kind));
    }
  }
  return join(parts, "; ");
}

// What is below a host's first line.
std::string body_of(const TopologyHost& host, bool is_local) {
  std::string text;
  const bool needs_nodes =
      host.nodes.size() > 1 || (host.nodes.size() == 1 && !host.nodes[0].adapters.empty());
  const bool is_short = host.nodes.size() > kMostNodesOfTwo;
  for (std::size_t i = 0; i < std::min(host.nodes.size(), kMostListedNodes); ++i) {
    const TopologyNode& node = host.nodes[i];
    if (needs_nodes) text += "  " + node_in_words(host, node) + (is_short ? "" : "\n");
    if (!node.ranks.empty())
      text += std::string(!needs_nodes ? "  "
                          : is_short   ? "; "
                                       : "    ") +
              describe_ranks(host, node.ranks, is_local) + (is_short ? "" : "\n");
    if (is_short) text += "\n";
  }
  if (host.nodes.size() > kMostListedNodes)
    text += "  and " + count_of(host.nodes.size() - kMostListedNodes, "node") + " more\n";
  if (!host.ranks_of_no_node.empty())
    text += "  " + describe_ranks(host, host.ranks_of_no_node, is_local) + "\n";
  if (!host.links.empty()) text += "  GPU links: " + links_in_words(host) + "\n";
  return text;
}

std::vector<int> ranks_of(const TopologyHost& host) {
  std::vector<int> ranks;
  for (const TopologyRank& rank : host.ranks) ranks.push_back(rank.rank);
  return ranks;
}

using Hosts = std::vector<const TopologyHost*>;

// Of hosts that have equally many.
std::string ranks_of_group(const Hosts& hosts) {
  std::vector<int> all, sorted;
  std::vector<std::string> each;
  for (const TopologyHost* host : hosts) {
    const std::vector<int> ranks = ranks_of(*host);
    all.insert(all.end(), ranks.begin(), ranks.end());
    if (each.size() < kMostHostsOfRanks) each.push_back(host->name + " " + format_ranges(ranks));
  }
  if (all.empty()) return "";
  sorted = all;
  std::sort(sorted.begin(), sorted.end());
  const std::string text = "  " + numbers_of("rank", sorted) + ", " +
                           std::to_string(hosts[0]->ranks.size()) + " on each";
  if (sorted == all) return text + " in turn\n";
  return text + ": " + join(each, "; ") + (each.size() < hosts.size() ? "; ..." : "") + "\n";
}

// " 503-504 GiB", so that what differs a little makes no group.
std::string describe_memory(const Hosts& hosts) {
  double least = 0, most = 0;
  for (const TopologyHost* host : hosts) {
    const double gibibytes = static_cast<double>(host->memory_bytes) / kGibibyte;
    if (host == hosts[0]) least = most = gibibytes;
    least = std::min(least, gibibytes);
    most = std::max(most, gibibytes);
  }
  if (most == 0) return "";
  char words[2][32];
  std::snprintf(words[0], sizeof words[0], least < 10 ? "%.1f" : "%.0f", least);
  std::snprintf(words[1], sizeof words[1], most < 10 ? "%.1f" : "%.0f", most);
  const std::string from = words[0], to = words[1];
  return ", " + (from == to ? from : from + "-" + to) + " GiB";
}

std::string group_as_text(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const TopologyHost* host : hosts) names.push_back(host->name);
  const TopologyHost& first = *hosts[0];
  const bool is_one = hosts.size() == 1;
  std::string text = fold_host_names(names) + ": ";
  if (!first.is_reached)
    return text + (is_one ? "does" : "do") + " not answer" +
           (is_one && !first.ranks.empty() ? "; " + numbers_of("rank", ranks_of(first)) : "") +
           "\n";
  text += host_in_words(first) + describe_memory(hosts) + "\n";
  if (!is_one) text += ranks_of_group(hosts);
  return text + body_of(first, !is_one);
}

// "9.8-11.9 GB/s"
std::string span_in_words(double least, double most) {
  const std::string from = bandwidth_in_words(least), to = bandwidth_in_words(most);
  return from == to ? from : from + " to " + to;
}

std::string paths_in_words(const JobTopology& topology) {
  std::size_t reached = 0, measured = 0;
  const HostPath *slowest = nullptr, *fastest = nullptr;
  double longest_us = 0;
  for (const HostPath& path : topology.paths) {
    reached += path.is_reached ? 1 : 0;
    longest_us = std::max(longest_us, path.round_trip_us.value_or(0));
    if (!path.megabytes_per_s) continue;
    ++measured;
    if (slowest == nullptr || *path.megabytes_per_s < *slowest->megabytes_per_s) slowest = &path;
    if (fastest == nullptr || *path.megabytes_per_s > *fastest->megabytes_per_s) fastest = &path;
  }
  if (topology.paths.empty()) return "";
  std::string text = "between hosts: reached " + std::to_string(reached) + " of " +
                     count_of(topology.paths.size(), "pair");
  if (measured > 0)
    text += "; measured " + count_of(measured, "pair") + ": " +
            span_in_words(*slowest->megabytes_per_s, *fastest->megabytes_per_s);
  if (measured > 1)
    text += ", slowest " + topology.hosts[slowest->from].name + " - " +
            topology.hosts[slowest->to].name;
  if (longest_us > 0) text += ", round trip up to " + format_duration(Seconds(longest_us / 1e6));
  return text + "\n";
}

}  // namespace

std::string bandwidth_in_words(double megabytes_per_s) {
  char words[48];
  if (megabytes_per_s >= 1000) {
    std::snprintf(words, sizeof words, "%.1f GB/s", megabytes_per_s / 1000);
  } else {
    std::snprintf(words, sizeof words, megabytes_per_s < 10 ? "%.1f MB/s" : "%.0f MB/s",
                  megabytes_per_s);
  }
  return words;
}

std::string host_in_words(const TopologyHost& host) {
  std::size_t cores = 0, threads = 0, numbered = 0;
  for (const TopologyNode& node : host.nodes) {
    numbered += node.number ? 1 : 0;
    cores += node.cores.size();
    threads += threads_of(node).size();
  }
  std::vector<std::string> parts;
  if (numbered > 1) parts.push_back(count_of(numbered, "NUMA node"));
  parts.push_back(count_of(cores, "core") +
                  (threads == cores ? "" : " (" + count_of(threads, "thread") + ")"));
  std::vector<std::pair<std::string, std::string>> models;
  for (const TopologyGpu& gpu : host.gpus)
    models.emplace_back("", (gpu.model.empty() ? "GPU" : gpu.model) +
                                (gpu.parts > 0 ? " in " + count_of(gpu.parts, "MIG device") : ""));
  for (const FactGroup& group : group_facts(models))
    parts.push_back((group.hosts.size() == 1 ? "" : std::to_string(group.hosts.size()) + " x ") +
                    group.fact);
  return join(parts, ", ");
}

std::string bindings_in_words(const std::vector<const TopologyRank*>& ranks) {
  std::vector<std::string> gpus, cores;
  bool has_gpu = false, has_core = false;
  for (const TopologyRank* rank : ranks) {
    has_gpu = has_gpu || !rank->gpus.empty();
    has_core = has_core || !rank->cores.empty();
    gpus.push_back(rank->gpus.empty() ? "-" : format_ranges(rank->gpus));
    cores.push_back(rank->cores.empty() ? "all" : format_ranges(rank->cores));
  }
  std::vector<std::string> parts;
  if (has_gpu) parts.push_back(one_by_one("GPU", gpus));
  parts.push_back(has_core ? one_by_one("core", cores) : "not bound to cores");
  return join(parts, ", ");
}

std::string topology_as_text(const JobTopology& topology) {
  std::vector<Hosts> groups;
  std::map<std::string, std::size_t> places;
  for (const TopologyHost& host : topology.hosts) {
    const std::string key =
        host.is_reached
            ? host_in_words(host) + std::to_string(host.ranks.size()) + body_of(host, true)
            : "";
    const auto [place, is_new] = places.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&host);
  }
  std::string text;
  for (const Hosts& hosts : groups) text += group_as_text(hosts);
  return text + paths_in_words(topology);
}

}  // namespace hv::launcher
