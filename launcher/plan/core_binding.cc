// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/core_binding.h"

#include <algorithm>
#include <map>

#include "src/base/error.h"

namespace hv::launcher {
namespace {

// The cores of each node that has any, as indices into the host's.
std::map<int, std::vector<std::size_t>> cores_by_node(const std::vector<CoreFacts>& cores) {
  std::map<int, std::vector<std::size_t>> nodes;
  for (std::size_t i = 0; i < cores.size(); ++i) nodes[cores[i].node].push_back(i);
  return nodes;
}

// The nodes of rank `index` of `count` ranks without a GPU.
std::vector<int> nodes_for(std::size_t index, std::size_t count, const std::vector<int>& nodes,
                           bool in_turn, bool one_node) {
  if (in_turn) return {nodes[index % nodes.size()]};
  const std::size_t first = index * nodes.size() / count;
  if (one_node || count >= nodes.size()) return {nodes[first]};
  const std::size_t end = (index + 1) * nodes.size() / count;
  return {nodes.begin() + static_cast<std::ptrdiff_t>(first),
          nodes.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::vector<int>> nodes_of_ranks(const std::vector<int>& nodes, bool in_turn,
                                             bool one_node,
                                             const std::vector<std::optional<int>>& gpu_nodes) {
  const auto is_near_gpu = [&](const std::optional<int>& node) {
    return node && std::find(nodes.begin(), nodes.end(), *node) != nodes.end();
  };
  const auto others = static_cast<std::size_t>(
      std::count_if(gpu_nodes.begin(), gpu_nodes.end(),
                    [&](const std::optional<int>& node) { return !is_near_gpu(node); }));
  std::vector<std::vector<int>> result;
  std::size_t other = 0;
  for (const std::optional<int>& node : gpu_nodes)
    result.push_back(is_near_gpu(node) ? std::vector<int>{*node}
                                       : nodes_for(other++, others, nodes, in_turn, one_node));
  return result;
}

// Part `index` of `count` of the cores, as even as can be.
std::vector<std::size_t> part_of(const std::vector<std::size_t>& cores, std::size_t index,
                                 std::size_t count) {
  const std::size_t begin = index * cores.size() / count, end = (index + 1) * cores.size() / count;
  return {cores.begin() + static_cast<std::ptrdiff_t>(begin),
          cores.begin() + static_cast<std::ptrdiff_t>(end)};
}

[[noreturn]] void refuse_core(const std::string& host, std::size_t ranks, std::size_t cores) {
  throw Error(ErrorKind::kUsage,
              "--bind-to core: no core is left for each of the " + std::to_string(ranks) +
                  " ranks on host " + host + ", which has " + std::to_string(cores),
              "fewer ranks there, or --bind-to numa");
}

[[noreturn]] void refuse_gpu(const std::string& host, std::size_t local_rank) {
  throw Error(ErrorKind::kUsage,
              "--bind-to gpu: local rank " + std::to_string(local_rank) + " on host " + host +
                  " has no GPU of which the system tells the near cores",
              "leave --bind-to out: ranks without a GPU get their share of the cores");
}

// A core of these that nobody has yet.
std::optional<std::size_t> take_core(const std::vector<std::size_t>& cores,
                                     std::vector<bool>* is_taken) {
  for (const std::size_t core : cores) {
    if ((*is_taken)[core]) continue;
    (*is_taken)[core] = true;
    return core;
  }
  return std::nullopt;
}

// BindTo::kAuto. near: the cores of the rank's nodes, which it shares with `count` - 1 others.
// index: its number among them. Empty: the rank is not bound.
std::vector<std::size_t> automatic_cores(const std::vector<std::size_t>& near, std::size_t index,
                                         std::size_t count, bool has_gpu) {
  const bool shares = !has_gpu && near.size() >= 2 * count;
  std::vector<std::size_t> cores = shares ? part_of(near, index, count) : near;
  if (cores.size() < 2) cores.clear();
  return cores;
}

std::vector<int> threads_of(const std::vector<CoreFacts>& cores,
                            const std::vector<std::size_t>& chosen) {
  std::vector<int> threads;
  for (const std::size_t core : chosen)
    threads.insert(threads.end(), cores[core].threads.begin(), cores[core].threads.end());
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace

std::optional<BindTo> parse_bind_to(const std::string& text) {
  if (text == "none") return BindTo::kNone;
  if (text == "core") return BindTo::kCore;
  if (text == "numa") return BindTo::kNuma;
  if (text == "gpu") return BindTo::kGpu;
  return std::nullopt;
}

std::vector<BoundRank> bind_ranks(BindTo bind_to, bool in_turn, const std::vector<CoreFacts>& cores,
                                  int usable, const std::vector<std::optional<int>>& gpu_nodes,
                                  const std::string& host) {
  const std::size_t ranks = gpu_nodes.size();
  std::vector<BoundRank> result(ranks);
  if (!cores.empty()) usable = std::min(usable, static_cast<int>(cores.size()));
  for (BoundRank& rank : result) rank.own_cores = std::max(1, usable / static_cast<int>(ranks));
  if (cores.empty() || bind_to == BindTo::kNone) return result;
  const auto by_node = cores_by_node(cores);
  std::vector<int> nodes;
  for (const auto& [node, of_node] : by_node) nodes.push_back(node);
  const auto nodes_by_rank = nodes_of_ranks(nodes, in_turn, bind_to == BindTo::kNuma, gpu_nodes);
  std::map<std::vector<int>, std::size_t> sharers, seen;
  for (const std::vector<int>& of_rank : nodes_by_rank) ++sharers[of_rank];
  std::vector<bool> is_taken(cores.size(), false);
  for (std::size_t local = 0; local < ranks; ++local) {
    const std::vector<int>& of_rank = nodes_by_rank[local];
    const bool has_gpu = gpu_nodes[local] == of_rank.front();
    if (bind_to == BindTo::kGpu && !has_gpu) refuse_gpu(host, local);
    std::vector<std::size_t> near;
    for (const int node : of_rank)
      near.insert(near.end(), by_node.at(node).begin(), by_node.at(node).end());
    const std::size_t index = seen[of_rank]++, count = sharers[of_rank];
    BoundRank& rank = result[local];
    rank.own_cores = std::min(rank.own_cores, std::max(1, static_cast<int>(near.size() / count)));
    if (bind_to == BindTo::kCore) {
      const auto core = take_core(near, &is_taken);
      if (!core) refuse_core(host, ranks, cores.size());
      near = {*core};
      rank.own_cores = 1;
    } else if (bind_to == BindTo::kAuto) {
      near = automatic_cores(near, index, count, has_gpu);
    }
    rank.threads = threads_of(cores, near);
    if (!near.empty()) rank.nodes = of_rank;
  }
  return result;
}

}  // namespace hv::launcher
