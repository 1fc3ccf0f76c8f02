// A job of negotiating nodes inside one thread, and the messages between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/engine/negotiation/negotiation.h"

namespace hv::runtime {

inline Topology topology_of(const std::vector<int>& hosts, int rank) {
  Topology topology;
  topology.rank = rank;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    topology.leaders.push_back(static_cast<int>(topology.host_of.size()));
    topology.host_of.insert(topology.host_of.end(), static_cast<std::size_t>(hosts[host]),
                            static_cast<int>(host));
  }
  topology.size = static_cast<int>(topology.host_of.size());
  return topology;
}

inline Submission tensor(const std::string& name, std::int64_t count = 4) {
  Submission submission;
  submission.name = name;
  submission.description.kind = CollectiveKind::kAllreduce;
  submission.description.type = ElementType::kFloat32;
  submission.description.shape = {count};
  return submission;
}

inline Submission gather(const std::string& name, std::int64_t rows) {
  Submission submission = tensor(name);
  submission.description.kind = CollectiveKind::kAllgather;
  submission.description.shape = {kVaries, 2};
  submission.first_extent = rows;
  return submission;
}

// All nodes of a job, and the messages between them.
struct Network {
  Network(const std::vector<int>& hosts, NegotiationConfig config, int fanout = 2) {
    const int size = topology_of(hosts, 0).size;
    for (int rank = 0; rank < size; ++rank) {
      nodes.push_back(std::make_unique<Negotiation>(
          config, make_control_tree(topology_of(hosts, rank), fanout)));
    }
    verdicts.resize(nodes.size());
  }

  // Lets a rank conclude; its messages are under way then.
  void conclude(int rank) {
    Negotiation& node = *nodes[static_cast<std::size_t>(rank)];
    node.conclude(time);
    if (node.is_asked()) {
      node.answer("is rank " + std::to_string(rank) + " of the test");
      node.conclude(time);
    }
    if (auto words = node.take_stall_end()) stall_ends.push_back({rank, *std::move(words)});
    for (auto& [to, message] : node.take_messages()) {
      bytes_sent += message.size();
      bytes_of[rank] += message.size();
      bytes_of[to] += message.size();
      largest_message = std::max(largest_message, message.size());
      edges[{rank, to}].push_back(std::move(message));
    }
    for (Verdict& verdict : node.take_verdicts())
      verdicts[static_cast<std::size_t>(rank)].push_back(std::move(verdict));
    for (Waiting& stall : node.take_stalls()) stalls.push_back(std::move(stall));
  }

  // One message of a random edge arrives. False: none is under way.
  bool deliver(std::mt19937_64& random) {
    std::vector<std::pair<int, int>> busy;
    for (const auto& [edge, queue] : edges) {
      if (!queue.empty()) busy.push_back(edge);
    }
    if (busy.empty()) return false;
    const auto edge = busy[random() % busy.size()];
    const std::string message = std::move(edges[edge].front());
    edges[edge].pop_front();
    const Status status =
        nodes[static_cast<std::size_t>(edge.second)]->receive(edge.first, message, time);
    CHECK_MESSAGE(status.ok(), status.message);
    return true;
  }

  void settle(std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    do {
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) conclude(static_cast<int>(rank));
    } while (deliver(random));
  }

  void submit_everywhere(const Submission& submission) {
    for (auto& node : nodes) node->submit(submission, time);
  }

  std::vector<std::unique_ptr<Negotiation>> nodes;
  std::map<std::pair<int, int>, std::deque<std::string>> edges;
  std::vector<std::vector<Verdict>> verdicts;
  std::vector<Waiting> stalls;
  std::vector<std::pair<int, std::string>> stall_ends;  // (the rank that found it, words)
  std::size_t bytes_sent = 0;
  std::map<int, std::size_t> bytes_of;  // by rank: sent and received
  std::size_t largest_message = 0;
  TimePoint time = TimePoint{} + std::chrono::hours(1);
};

// "a+b|c|!d|>1|<2", "#", "@3": groups, a failure, all have joined (rank 1 last), a rank that left;
// a stall has ended the job; a turn of set 3.
inline std::string words_of(const std::vector<Verdict>& verdicts) {
  std::string words;
  for (const Verdict& verdict : verdicts) {
    if (!words.empty()) words += "|";
    if (const auto* group = std::get_if<StartGroup>(&verdict)) {
      for (std::size_t i = 0; i < group->tensors.size(); ++i)
        words += (i ? "+" : "") + group->tensors[i].name;
    } else if (const auto* failure = std::get_if<FailTensor>(&verdict)) {
      words += "!" + failure->name;
    } else if (const auto* joined = std::get_if<AllJoined>(&verdict)) {
      words += ">" + std::to_string(joined->last);
    } else if (std::holds_alternative<StallEnded>(verdict)) {
      words += "#";
    } else if (const auto* next = std::get_if<NextLaunch>(&verdict)) {
      words += "@" + std::to_string(next->set);
    } else {
      words += "<" + std::to_string(std::get<RankLeft>(verdict).rank);
    }
  }
  return words;
}

inline const std::vector<std::vector<int>> kJobs{{1}, {2}, {4}, {1, 1}, {2, 3}, {1, 2, 1, 3, 1, 1}};

}  // namespace hv::runtime
