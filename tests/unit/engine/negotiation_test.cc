// Tests of the negotiation: pure nodes in a simulated network whose messages arrive in any order
// between edges.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/negotiation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;
using std::chrono::milliseconds;

TEST_CASE("nothing starts before the last rank has the tensor, then it starts everywhere") {
  for (const auto& hosts : kJobs) {
    Network network(hosts, {});
    for (std::size_t rank = 0; rank + 1 < network.nodes.size(); ++rank) {
      network.nodes[rank]->submit(tensor("w"), network.time);
    }
    network.settle();
    for (const auto& verdicts : network.verdicts) CHECK(verdicts.empty());
    network.nodes.back()->submit(tensor("w"), network.time);
    network.settle();
    for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "w");
  }
}

TEST_CASE("what is ready together travels in rank 0's order") {
  Network network({2, 2}, {.fusion_threshold_bytes = 0});
  std::vector<std::string> names{"a", "b", "c", "d"};
  for (auto& node : network.nodes) {
    for (const std::string& name : names) node->submit(tensor(name), network.time);
    std::rotate(names.begin(), names.begin() + 1, names.end());
  }
  network.settle();
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "a|b|c|d");
}

TEST_CASE("turns of other sets stand at the same place of the groups on every rank") {
  for (const auto& hosts : kJobs) {
    Network network(hosts, {.fusion_threshold_bytes = 0});
    std::mt19937_64 random(7);
    std::size_t asked = 0;
    for (int round = 0; round < 20; ++round) {
      network.submit_everywhere(tensor("w" + std::to_string(round % 3)));
      for (std::size_t rank = 0; rank < network.nodes.size(); ++rank, ++asked) {
        network.nodes[rank]->ask_launch(static_cast<std::uint32_t>(1 + rank));
        if (random() % 2 == 0) network.conclude(static_cast<int>(rank));
      }
      network.settle(random());
    }
    for (auto& node : network.nodes) node->leave();
    network.settle();
    const std::string words = words_of(network.verdicts[0]);
    for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == words);
    CHECK(static_cast<std::size_t>(std::count(words.begin(), words.end(), '@')) == asked);
    CHECK(words.find("@1") < words.find("<"));
  }
}

TEST_CASE("a tensor seen before costs few bytes") {
  Network network({1, 1}, {});
  std::vector<std::size_t> costs;
  for (int round = 0; round < 3; ++round) {
    network.bytes_sent = 0;
    network.submit_everywhere(tensor(std::string(500, 'n')));
    network.settle();
    costs.push_back(network.bytes_sent);
  }
  CHECK(costs[0] > 1000);
  CHECK(costs[1] < 140);
  CHECK(costs[2] == costs[1]);
}

TEST_CASE(
    "a cached tensor in another shape on one rank is a mismatch everywhere, agreed on, it goes "
    "again") {
  Network network({2, 2}, {});
  network.submit_everywhere(tensor("w", 4));
  network.settle();
  for (std::size_t rank = 0; rank < 4; ++rank) {
    network.nodes[rank]->submit(tensor("w", rank == 2 ? 5 : 4), network.time);
  }
  network.settle();
  network.submit_everywhere(tensor("w", 5));
  network.settle();
  for (const auto& verdicts : network.verdicts) {
    CHECK(words_of(verdicts) == "w|!w|w");
    const auto& failure = std::get<FailTensor>(verdicts[1]);
    CHECK(failure.status.code == StatusCode::kMismatch);
    CHECK(failure.status.message.find("ranks 0-1,3 have float32 [4], rank 2 has float32 [5]") !=
          std::string::npos);
  }
}

TEST_CASE("an allgather's extents reach every rank by rank, cached or changed") {
  Network network({2, 1}, {});
  for (int round = 0; round < 3; ++round) {
    for (int rank = 0; rank < 3; ++rank) {
      network.nodes[static_cast<std::size_t>(rank)]->submit(
          gather("g", round < 2 ? rank : 7 + (rank == 1)), network.time);
    }
    network.settle();
  }
  for (const auto& verdicts : network.verdicts) {
    REQUIRE(verdicts.size() == 3);
    CHECK(std::get<StartGroup>(verdicts[0]).tensors[0].first_extents ==
          std::vector<std::int64_t>{0, 1, 2});
    CHECK(std::get<StartGroup>(verdicts[1]).tensors[0].first_extents ==
          std::vector<std::int64_t>{0, 1, 2});
    CHECK(std::get<StartGroup>(verdicts[2]).tensors[0].first_extents ==
          std::vector<std::int64_t>{7, 8, 7});
  }
}

TEST_CASE("a number evicted while it is under way still counts") {
  // Room for one entry: "a" is cached; rank 1 reports its number while "b" pushes it out.
  Network network({2}, {.cache_capacity = 1});
  network.submit_everywhere(tensor("a"));
  network.settle();
  network.nodes[0]->submit(tensor("b"), network.time);
  network.nodes[1]->submit(tensor("b"), network.time);
  network.nodes[1]->submit(tensor("a"), network.time);
  network.settle();
  network.nodes[0]->submit(tensor("a"), network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "a|b|a");
}

TEST_CASE("one decision may use a cached tensor and push it out") {
  Network network({1, 1}, {.fusion_threshold_bytes = 0, .cache_capacity = 1});
  network.submit_everywhere(tensor("a"));
  network.settle();
  for (auto& node : network.nodes) {
    node->submit(tensor("b"), network.time);
    node->submit(tensor("c"), network.time);
    node->submit(tensor("a"), network.time);
  }
  network.settle();
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "a|b|c|a");
}

TEST_CASE("a rank that leaves is the last thing that is decided") {
  for (const int leaver : {0, 3}) {
    Network network({2, 2}, {});
    network.submit_everywhere(tensor("w"));
    network.settle();
    network.nodes[1]->submit(tensor("pending"), network.time);
    network.nodes[static_cast<std::size_t>(leaver)]->leave();
    network.settle();
    network.submit_everywhere(tensor("later"));
    network.settle();
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CHECK(words_of(network.verdicts[rank]) == "w|<" + std::to_string(leaver));
      CHECK(network.nodes[rank]->is_over());
    }
  }
}

TEST_CASE("the root is told which ranks of other hosts miss a tensor") {
  NegotiationConfig config;
  config.stall_limit = milliseconds(1000);
  Network network({2, 3, 1}, config);
  for (const int rank : {0, 2, 4, 5})
    network.nodes[static_cast<std::size_t>(rank)]->submit(tensor("w"), network.time);
  network.settle();
  CHECK(network.stalls.empty());
  for (int tick = 0; tick < 6; ++tick) {
    network.time += milliseconds(250);
    network.settle();
  }
  REQUIRE(network.stalls.size() == 1);
  CHECK(network.stalls[0].name == "w");
  CHECK(network.stalls[0].missing == std::vector<std::uint32_t>{1, 3});
  for (const int rank : {1, 3})
    network.nodes[static_cast<std::size_t>(rank)]->submit(tensor("w"), network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "w");
}

TEST_CASE("a rank whose parent stands still says so") {
  NegotiationConfig config;
  config.stall_limit = milliseconds(1000);
  Network network({1, 2}, config);
  Negotiation& waits = *network.nodes[2];
  waits.submit(tensor("w"), network.time);
  std::vector<int> told;
  for (int tick = 0; tick <= 12; ++tick) {
    waits.conclude(network.time);  // nobody else does anything
    waits.take_messages();
    if (const auto silence = waits.take_silence()) {
      CHECK(silence->rank == 1);
      CHECK(silence->name == "w");
      told.push_back(tick * 250);
    }
    network.time += milliseconds(250);
  }
  CHECK(told == std::vector<int>{1500});
}

TEST_CASE("nobody calls a parent silent that waits for others itself") {
  NegotiationConfig config;
  config.stall_limit = milliseconds(1000);
  Network network({1, 2, 2}, config);
  for (const std::size_t rank : {1u, 2u, 4u})
    network.nodes[rank]->submit(tensor("w"), network.time);
  for (int tick = 0; tick < 40; ++tick) {
    network.settle();
    for (auto& node : network.nodes) CHECK_FALSE(node->take_silence());
    network.time += milliseconds(250);
  }
  CHECK(network.stalls.size() >= 1);
}

TEST_CASE("a leader that has said nothing is named beside the ranks that it speaks for") {
  NegotiationConfig config;
  config.stall_limit = milliseconds(1000);
  Network network({1, 2}, config);
  network.nodes[0]->submit(tensor("w"), network.time);
  for (int tick = 0; tick < 6; ++tick) {
    network.settle();
    network.time += milliseconds(250);
  }
  REQUIRE(network.stalls.size() == 1);
  CHECK(network.stalls[0].missing == std::vector<std::uint32_t>{1, 2});
  CHECK(network.stalls[0].silent == std::vector<std::uint32_t>{1});
}

TEST_CASE("a tensor that rank 0 itself misses is told as well") {
  NegotiationConfig config;
  config.stall_limit = milliseconds(1000);
  Network network({1, 2}, config);
  network.nodes[1]->submit(tensor("w"), network.time);
  network.nodes[2]->submit(tensor("w"), network.time);
  for (int tick = 0; tick < 6; ++tick) {
    network.settle();
    network.time += milliseconds(250);
  }
  REQUIRE(network.stalls.size() == 1);
  CHECK(network.stalls[0].missing == std::vector<std::uint32_t>{0});
}

TEST_CASE("bytes that are no message of a peer are an error in words, never taken") {
  Network network({2, 2}, {});
  network.submit_everywhere(tensor("w"));
  network.conclude(1);
  const std::string good = network.edges[{1, 0}].front();
  Negotiation& root = *network.nodes[0];
  CHECK(root.receive(1, "", network.time).code == StatusCode::kSystem);
  CHECK_FALSE(root.receive(1, "\x07rubbish", network.time).ok());
  CHECK_FALSE(root.receive(3, good, network.time).ok());  // not a child of rank 0
  CHECK_FALSE(root.receive(1, good + "x", network.time).ok());
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_FALSE(root.receive(1, good.substr(0, size), network.time).ok());
  Decision decision;
  decision.groups.push_back({{77}, {}});
  CHECK_FALSE(network.nodes[1]
                  ->receive(0, encode_control(ControlType::kDecision, decision), network.time)
                  .ok());
  decision.groups = {{{}, {{"unknown", {}}}}};
  CHECK_FALSE(network.nodes[1]
                  ->receive(0, encode_control(ControlType::kDecision, decision), network.time)
                  .ok());
  decision.groups = {{{}, {{"w", {}}, {"w", {}}}}};
  CHECK_FALSE(network.nodes[1]
                  ->receive(0, encode_control(ControlType::kDecision, decision), network.time)
                  .ok());
  Report other_epoch;
  other_epoch.epoch = 9;
  CHECK_FALSE(
      root.receive(1, encode_control(ControlType::kReport, other_epoch), network.time).ok());
}

TEST_CASE("random bytes never break a node") {
  std::mt19937_64 random(3);
  Network network({2}, {});
  network.submit_everywhere(tensor("w"));
  network.conclude(1);
  const std::string good = network.edges[{1, 0}].front();
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    (void)network.nodes[0]->receive(1, bytes, network.time).ok();
  }
  network.settle();
}
