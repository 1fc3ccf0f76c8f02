// Tensors that come together step after step are one number; whoever does otherwise is served too.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::vector<std::string> kNames{"a", "b", "c", "d", "e"};
constexpr int kLearning = 5;  // fresh, then cached: what a step is, and three equal ones

void submit(Network& network, std::size_t rank, const std::string& name, std::int64_t count = 4) {
  network.nodes[rank]->submit(tensor(name, count), network.time);
}

void step(Network& network) {
  for (const std::string& name : kNames) network.submit_everywhere(tensor(name));
  network.settle();
}

// A job whose ranks know the five tensors as a bucket; what was started so far is forgotten.
Network trained(const std::vector<int>& hosts, NegotiationConfig config = {}) {
  Network network(hosts, config);
  for (int i = 0; i < kLearning; ++i) step(network);
  for (auto& verdicts : network.verdicts) verdicts.clear();
  network.bytes_sent = 0;
  return network;
}

void check_all(const Network& network, const std::string& words) {
  for (const auto& verdicts : network.verdicts) CHECK(words_of(verdicts) == words);
}

}  // namespace

TEST_CASE("after some equal steps a bucket is one number, started when all ranks have all of it") {
  for (const auto& hosts : kJobs) {
    if (hosts == std::vector<int>{1}) continue;
    Network network = trained(hosts);
    const std::size_t last = network.nodes.size() - 1;
    for (std::size_t rank = 0; rank <= last; ++rank)
      for (const std::string& name : kNames)
        if (rank != last || name != "c") submit(network, rank, name);
    network.settle();
    check_all(network, "");
    CHECK(network.nodes[last]->is_holding());
    submit(network, last, "c");
    network.settle();
    check_all(network, "a+b+c+d+e");
    CHECK_FALSE(network.nodes[last]->is_holding());
    for (const auto& node : network.nodes) CHECK(node->next_look() == TimePoint::max());
  }
}

TEST_CASE("the cost of a step does not grow with its tensors") {
  Network network = trained({2, 2});
  step(network);
  // Each of three edges: type, epoch, decisions and seven lengths and marks up, as much down.
  CHECK(network.bytes_sent < 3 * 2 * 80);
  Network single = trained({2, 2}, {.bucket_bytes = 0});
  step(single);
  CHECK(single.bytes_sent > network.bytes_sent);
}

TEST_CASE("who waits for a tensor before it has the rest of the bucket gets it, and so do others") {
  for (const std::size_t waiter : {0u, 1u, 3u}) {
    Network network = trained({2, 2});
    for (std::size_t rank = 0; rank < 4; ++rank) submit(network, rank, "b");
    network.settle();
    check_all(network, "");
    network.nodes[waiter]->await("b");
    network.settle();
    check_all(network, "b");
    for (const std::string name : {"a", "c"})
      for (std::size_t rank = 0; rank < 4; ++rank) submit(network, rank, name);
    network.settle();
    check_all(network, "b|a+c");
  }
}

TEST_CASE("a wait for what is not held back changes nothing") {
  Network network = trained({2, 2});
  for (const std::string& name : kNames) submit(network, 1, name);
  submit(network, 1, "other");
  network.nodes[1]->await("a");
  network.nodes[1]->await("other");
  network.nodes[1]->await("unknown");
  network.settle();
  for (const std::size_t rank : {0u, 2u, 3u})
    for (const std::string& name : kNames) submit(network, rank, name);
  network.settle();
  check_all(network, "a+b+c+d+e");
}

TEST_CASE("a bucket that some have whole and others never will is spelled out") {
  Network network = trained({2, 2});
  for (const std::size_t rank : {0u, 2u, 3u})
    for (const std::string& name : kNames) submit(network, rank, name);
  submit(network, 1, "a");
  submit(network, 1, "b", 9);  // another shape
  network.settle();
  check_all(network, "a|!b");
  for (const std::string name : {"c", "d", "e"}) submit(network, 1, name);
  network.settle();
  check_all(network, "a|!b|c+d+e");
}

TEST_CASE("what is neither waited for nor completed is given up after a second") {
  Network network = trained({2, 2});
  for (std::size_t rank = 0; rank < 4; ++rank) submit(network, rank, "d");
  network.settle();
  CHECK(network.nodes[2]->next_look() <= network.time + std::chrono::seconds(1));
  network.time += std::chrono::seconds(1);
  network.settle();
  check_all(network, "d");
}

TEST_CASE("ranks that miss a bucket are told of by tensor") {
  Network network = trained({2, 2}, {.stall_limit = std::chrono::seconds(8)});
  for (const std::size_t rank : {0u, 1u, 2u})
    for (const std::string& name : kNames) submit(network, rank, name);
  for (int tick = 0; tick < 20 && network.stalls.empty(); ++tick) {
    network.settle();
    network.time += std::chrono::seconds(1);
  }
  REQUIRE(network.stalls.size() == kNames.size());
  for (const Waiting& stall : network.stalls) CHECK(stall.missing == std::vector<std::uint32_t>{3});
}

TEST_CASE("a fresh tensor that may push one of a bucket out of the cache ends the bucket") {
  Network network = trained({2, 2}, {.cache_capacity = 6});
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (const std::string& name : kNames) submit(network, rank, name);
  for (const std::string name : {"a", "b"}) submit(network, 3, name);
  network.settle();
  for (const std::string name : {"x", "y"}) network.submit_everywhere(tensor(name));
  network.settle();
  check_all(network, "x+y|b+a");  // a had to go from the cache: fresh ones come last
  for (const std::string name : {"c", "d", "e"}) submit(network, 3, name);
  network.settle();
  check_all(network, "x+y|b+a|d+e+c");
}

TEST_CASE("a rank that joins ends the buckets, and the others go on without it") {
  for (const std::size_t joiner : {0u, 2u, 3u}) {
    Network network = trained({2, 2});
    network.nodes[joiner]->join(network.time);
    for (std::size_t rank = 0; rank < 4; ++rank)
      if (rank != joiner)
        for (const std::string& name : kNames) submit(network, rank, name);
    network.settle();
    check_all(network, "a+b+c+d+e");
    for (std::size_t rank = 0; rank < 4; ++rank)
      if (rank != joiner) network.nodes[rank]->join(network.time);
    network.settle();
    for (const auto& verdicts : network.verdicts)
      CHECK(std::holds_alternative<AllJoined>(verdicts.back()));
  }
}

TEST_CASE("what a leader sends and gets does not grow with the number of hosts") {
  std::map<std::string, std::vector<std::size_t>> costs;  // fresh, cached, bucket; by size of job
  for (const int hosts : {40, 280}) {
    Network network(std::vector<int>(static_cast<std::size_t>(hosts), 2), {}, kLeaderFanout);
    for (int i = 0; i <= kLearning; ++i) {
      network.bytes_of.clear();
      step(network);
      std::size_t most = 0;
      for (const auto& [rank, bytes] : network.bytes_of) most = std::max(most, bytes);
      if (i == 0) costs["fresh"].push_back(most);
      if (i == 1) costs["cached"].push_back(most);
      if (i == kLearning) costs["bucket"].push_back(most);
    }
  }
  for (const auto& [kind, bytes] : costs) {
    CAPTURE(kind);
    CHECK(bytes[0] == bytes[1]);
  }
}

TEST_CASE(
    "what a rank gave before it joined counts, also of a bucket that it has in part or whole") {
  for (const std::size_t joiner : {0u, 1u, 2u, 3u}) {
    for (const std::size_t given : {std::size_t{1}, kNames.size()}) {
      CAPTURE(joiner);
      CAPTURE(given);
      Network network = trained({2, 2});
      for (std::size_t i = 0; i < given; ++i) submit(network, joiner, kNames[i]);
      if (given == 1) network.settle();
      network.nodes[joiner]->join(network.time);
      if (given > 1) network.settle();
      for (std::size_t rank = 0; rank < 4; ++rank)
        if (rank != joiner)
          for (const std::string& name : kNames) submit(network, rank, name);
      network.settle();
      for (const auto& verdicts : network.verdicts) {
        std::size_t present = 0, absent = 0;
        for (const Verdict& verdict : verdicts) {
          for (const FreshTensor& started : std::get<StartGroup>(verdict).tensors)
            ++(started.present == 0 ? present : absent);
        }
        CHECK(present == given);
        CHECK(absent == kNames.size() - given);
      }
    }
  }
}

TEST_CASE(
    "all ranks have some of a bucket and join: that much is done, and then they have joined") {
  Network network = trained({2, 2});
  network.submit_everywhere(tensor("b"));
  for (auto& node : network.nodes) node->join(network.time);
  network.settle();
  for (const auto& verdicts : network.verdicts) {
    REQUIRE(verdicts.size() == 2);
    CHECK(std::get<StartGroup>(verdicts[0]).tensors[0].name == "b");
    CHECK(std::holds_alternative<AllJoined>(verdicts[1]));
  }
}

TEST_CASE(
    "a tensor that comes in another shape in the very step that would be the plan is left out") {
  Network network({2, 2}, {});
  for (int i = 0; i + 1 < kLearning; ++i) {
    network.submit_everywhere(tensor("x"));
    network.submit_everywhere(tensor("z"));
    network.settle();
  }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    submit(network, rank, "x");
    if (rank != 3) submit(network, rank, "z");
  }
  network.settle();
  for (std::size_t rank = 0; rank < 4; ++rank) submit(network, rank, "x", 9);
  network.settle();
  submit(network, 3, "z");
  network.settle();
  for (const auto& verdicts : network.verdicts) {
    CHECK(words_of(verdicts).ends_with("x|x|z"));
    CHECK(words_of(verdicts) == words_of(network.verdicts[0]));
  }
}
