// Tests of ranks that have run out of data, in the simulated network.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const FreshTensor& started(const Verdict& verdict) {
  return std::get<StartGroup>(verdict).tensors.front();
}

}  // namespace

TEST_CASE("others go on without a rank that has joined, which learns what they do") {
  for (const auto& hosts : kJobs) {
    Network network(hosts, {});
    if (network.nodes.size() < 2) continue;
    const auto size = static_cast<std::uint32_t>(network.nodes.size());
    for (const std::size_t joined : {std::size_t{0}, network.nodes.size() - 1}) {
      CAPTURE(joined);
      for (auto& verdicts : network.verdicts) verdicts.clear();
      network.submit_everywhere(tensor("w"));  // cached from here on
      network.settle();
      network.nodes[joined]->join(network.time);
      network.settle();
      for (std::size_t rank = 0; rank < network.nodes.size(); ++rank) {
        if (rank != joined) network.nodes[rank]->submit(tensor("w"), network.time);
      }
      network.settle();
      for (const auto& verdicts : network.verdicts) {
        REQUIRE(verdicts.size() == 2);
        CHECK(started(verdicts[0]).present == 0);
        CHECK(started(verdicts[1]).present == size - 1);
        REQUIRE(started(verdicts[1]).description.size() == 1);
        CHECK(started(verdicts[1]).description[0] == tensor("w").description);
      }
      for (std::size_t rank = 0; rank < network.nodes.size(); ++rank) {
        if (rank != joined) network.nodes[rank]->join(network.time);
      }
      network.settle();
      for (const auto& verdicts : network.verdicts) {
        REQUIRE(verdicts.size() == 3);
        CHECK(std::holds_alternative<AllJoined>(verdicts[2]));
      }
    }
    // Everybody works again, and everybody is needed.
    for (auto& verdicts : network.verdicts) verdicts.clear();
    for (std::size_t rank = 0; rank + 1 < network.nodes.size(); ++rank)
      network.nodes[rank]->submit(tensor("w"), network.time);
    network.settle();
    for (const auto& verdicts : network.verdicts) CHECK(verdicts.empty());
    network.nodes.back()->submit(tensor("w"), network.time);
    network.settle();
    for (const auto& verdicts : network.verdicts) {
      REQUIRE(verdicts.size() == 1);
      CHECK(started(verdicts[0]).present == 0);
    }
  }
}

TEST_CASE(
    "a tensor that waits for a rank starts when that rank joins, one that it had given counts") {
  Network network({2, 2}, {});
  for (std::size_t rank = 0; rank < 3; ++rank) {
    network.nodes[rank]->submit(tensor("missed"), network.time);
    network.nodes[rank]->submit(tensor("given"), network.time);
  }
  network.nodes[3]->submit(tensor("given"), network.time);
  network.nodes[3]->join(network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == "given|missed");
  CHECK(started(network.verdicts[3][0]).present == 0);
  CHECK(started(network.verdicts[3][1]).present == 3);
}

TEST_CASE("what is no allreduce fails on every rank that waits for it, and joining still ends") {
  Network network({2, 2}, {});
  network.nodes[1]->join(network.time);
  network.settle();
  for (const std::size_t rank : {0, 2, 3})
    network.nodes[rank]->submit(gather("g", 1), network.time);
  network.settle();
  for (const std::size_t rank : {0, 2, 3}) {
    REQUIRE(network.verdicts[rank].size() == 1);
    const auto& failure = std::get<FailTensor>(network.verdicts[rank][0]);
    CHECK(failure.status.code == StatusCode::kUnsupported);
    CHECK(failure.status.message.find(
              "rank 1 has joined (hvrun_join), and allgather needs every rank") !=
          std::string::npos);
  }
  CHECK(network.verdicts[1].empty());
  for (const std::size_t rank : {3, 0, 2}) {
    network.nodes[rank]->join(network.time);
    network.settle();
  }
  for (const auto& verdicts : network.verdicts)
    CHECK(std::get<AllJoined>(verdicts.back()).last == 2);
}

// Each rank has another number of steps, and joins after its last; then all begin anew.
TEST_CASE("ranks that run out of data at different times all start the same, in one order") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto& hosts = kJobs[seed % kJobs.size()];
    Network network(hosts, {.cache_capacity = seed % 3 == 0 ? 2u : 100u});
    std::size_t epochs_seen = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int> left;
      int most = 0;
      for (std::size_t rank = 0; rank < network.nodes.size(); ++rank) {
        left.push_back(static_cast<int>(random() % 6));
        most = std::max(most, left.back());
      }
      for (int step = 0; step <= most; ++step) {
        for (std::size_t rank = 0; rank < network.nodes.size(); ++rank) {
          if (left[rank] == step) network.nodes[rank]->join(network.time);
          if (left[rank] <= step) continue;
          network.nodes[rank]->submit(tensor("a"), network.time);
          network.nodes[rank]->submit(tensor("b", step + 1), network.time);
        }
        network.settle(random());
      }
      ++epochs_seen;
      for (const auto& verdicts : network.verdicts) {
        std::size_t starts = 0, ends = 0;
        for (const Verdict& verdict : verdicts) {
          if (const auto* group = std::get_if<StartGroup>(&verdict))
            starts += group->tensors.size();
          ends += std::holds_alternative<AllJoined>(verdict);
        }
        CHECK(starts == 2 * static_cast<std::size_t>(most));
        CHECK(ends == 1);
        CHECK(words_of(verdicts) == words_of(network.verdicts[0]));
      }
      for (auto& verdicts : network.verdicts) verdicts.clear();
    }
    CHECK(epochs_seen == 3);
  }
}

TEST_CASE("what a rank gave before it joined counts, however many reports it takes to say so") {
  NegotiationConfig config;
  config.message_bytes = 500;
  Network network({2, 2}, config);
  constexpr int kTensors = 40;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < kTensors; ++i) {
      network.nodes[rank]->submit(tensor(std::string(90, 'n') + std::to_string(i)), network.time);
      network.nodes[rank]->submit(gather(std::string(90, 'g') + std::to_string(i), 1),
                                  network.time);
    }
  }
  // Those of the second host join before a word of it has left them.
  network.nodes[2]->join(network.time);
  network.nodes[3]->join(network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) {
    std::size_t starts = 0;
    for (const Verdict& verdict : verdicts) {
      REQUIRE(std::holds_alternative<StartGroup>(verdict));
      for (const FreshTensor& tensor : std::get<StartGroup>(verdict).tensors) {
        CHECK(tensor.present == 0);
        ++starts;
      }
    }
    CHECK(starts == 2 * kTensors);
  }
  for (const std::size_t rank : {0, 1}) network.nodes[rank]->join(network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts)
    CHECK(std::holds_alternative<AllJoined>(verdicts.back()));
}

TEST_CASE("a tensor that only a partial report speaks of ends with the join, and harms nobody") {
  Network network({2, 2}, {});
  Report report;
  report.partial.push_back({"never", 70000, {3}, {}});
  CHECK(network.nodes[0]
            ->receive(1, encode_control(ControlType::kReport, report), network.time)
            .code == StatusCode::kSystem);  // of a rank that it does not speak for
  report.partial[0].missing = {1};
  CHECK(network.nodes[0]
            ->receive(1, encode_control(ControlType::kReport, report), network.time)
            .ok());
  for (auto& node : network.nodes) node->join(network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) {
    REQUIRE(verdicts.size() == 1);
    CHECK(std::holds_alternative<AllJoined>(verdicts[0]));
  }
}

TEST_CASE("a group that is not whole when all have joined is refused, and its number is free") {
  Network network({2, 1}, {});
  Submission part = tensor("a");
  part.description.group = 7;
  part.description.group_size = 2;
  network.nodes[2]->join(network.time);
  for (const std::size_t rank : {0, 1}) network.nodes[rank]->submit(part, network.time);
  network.settle();
  for (const std::size_t rank : {0, 1}) network.nodes[rank]->join(network.time);
  network.settle();
  for (const std::size_t rank : {0, 1})
    CHECK(words_of(network.verdicts[rank]).substr(0, 3) == "!a|");
  CHECK(network.verdicts[2].size() == 1);
  Submission other = part;
  other.name = "b";
  network.submit_everywhere(part);
  network.submit_everywhere(other);
  network.settle();
  for (const auto& verdicts : network.verdicts)
    CHECK(words_of(verdicts).find("a+b") != std::string::npos);
}

TEST_CASE("a rank that waits for others to join says whom it waits for, after the stall's time") {
  Network network({2, 1}, {});
  network.nodes[0]->join(network.time);
  network.nodes[2]->join(network.time);
  network.settle();
  network.time += std::chrono::seconds(1);
  network.settle();
  CHECK(network.stalls.empty());
  network.time += std::chrono::seconds(60);
  network.settle();
  REQUIRE(network.stalls.size() == 1);
  CHECK(network.stalls[0].missing == std::vector<std::uint32_t>{1});
}
