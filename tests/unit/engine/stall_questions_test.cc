// Tests of what is asked of ranks that others wait for, and of the end of a job by a stall.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/stall_questions.h"

#include <doctest/doctest.h>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;
using std::chrono::milliseconds;

namespace {

const TimePoint kQuestionStart = TimePoint{} + std::chrono::hours(1);

NegotiationConfig with_limits(milliseconds warning, milliseconds end = milliseconds(0)) {
  NegotiationConfig config;
  config.stall_limit = warning;
  config.stall_end = end;
  return config;
}

// The tree of rank 0 of hosts with one rank each, all of them its children.
ControlTree root_of(int ranks) {
  return make_control_tree(topology_of(std::vector<int>(static_cast<std::size_t>(ranks), 1), 0),
                           ranks);
}

void pass(Network& network, int ticks) {
  for (int tick = 0; tick < ticks; ++tick) {
    network.settle();
    network.time += milliseconds(250);
  }
}

}  // namespace

TEST_CASE("ranks of every level say where they stand when others wait for them") {
  Network network({2, 3, 1}, with_limits(milliseconds(1000)));
  for (const int rank : {0, 2, 4})
    network.nodes[static_cast<std::size_t>(rank)]->submit(tensor("w"), network.time);
  pass(network, 6);
  REQUIRE(network.stalls.size() == 1);
  const std::vector<std::uint32_t> missing{1, 3, 5};
  CHECK(network.stalls[0].missing == missing);
  REQUIRE(network.stalls[0].standing.size() == 3);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    CHECK(network.stalls[0].standing[i].rank == missing[i]);
    CHECK(network.stalls[0].standing[i].words ==
          "is rank " + std::to_string(missing[i]) + " of the test");
  }
}

TEST_CASE("what comes together while its missing ranks are asked does not end the job") {
  Network network({1, 1}, with_limits(milliseconds(0), milliseconds(1000)));
  for (int round = 0; round < 2; ++round) {
    const std::string name = "w" + std::to_string(round);
    network.nodes[0]->submit(tensor(name), network.time);
    network.settle();
    network.time += milliseconds(1000);
    network.conclude(0);  // asks
    network.nodes[1]->submit(tensor(name), network.time);
    network.settle();
    network.time += milliseconds(250);
    network.settle();
    CHECK(network.stall_ends.empty());
    CHECK(words_of(network.verdicts[1]) == (round == 0 ? "w0" : "w0|w1"));
  }
  network.nodes[0]->submit(tensor("v"), network.time);
  pass(network, 6);
  CHECK(network.stall_ends.size() == 1);
}

TEST_CASE("nobody is asked before something stalls") {
  Network network({2, 2}, with_limits(milliseconds(1000)));
  for (auto& node : network.nodes) {
    node->submit(tensor("w"), network.time);
    CHECK_FALSE(node->is_asked());
  }
  network.settle();
  const std::size_t before = network.bytes_sent;
  pass(network, 20);
  CHECK(network.bytes_sent == before);
}

TEST_CASE("who does not answer is waited for within bounds, and told") {
  const ControlTree tree = root_of(4);
  StallQuestions root(7, tree, milliseconds(250));
  StallQuestions::Messages out;
  root.ask({{"w", kQuestionStart, {1, 2}, {}}}, kQuestionStart, &out);
  CHECK(out.size() == 2);
  CHECK(root.take(kQuestionStart).empty());
  CHECK(root.next_look() == kQuestionStart + milliseconds(250));
  const auto answer = encode(StallAnswer{7, 1, 2, "works"});
  CHECK(root.receive_answer(tree.children[1], answer, &out));
  CHECK(root.take(kQuestionStart + milliseconds(249)).empty());
  const auto told = root.take(kQuestionStart + milliseconds(250));
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].standing.size() == 2);
  CHECK(told[0].standing[0].words == "has not answered");
  CHECK(told[0].standing[1].words == "works");
  CHECK(root.next_look() == TimePoint::max());
}

TEST_CASE("of many missing ranks a few are asked") {
  const ControlTree tree = root_of(100);
  StallQuestions root(7, tree, milliseconds(250));
  std::vector<std::uint32_t> missing(99);
  for (std::uint32_t i = 0; i < 99; ++i) missing[i] = i + 1;
  StallQuestions::Messages out;
  root.ask({{"v", kQuestionStart, missing, {}}, {"w", kQuestionStart, missing, {}}}, kQuestionStart,
           &out);
  CHECK(out.size() == kMostAsked);
}

TEST_CASE("a question or answer that no rank sends is refused, a late one dropped") {
  const ControlTree tree = root_of(3);
  StallQuestions root(7, tree, milliseconds(250));
  StallQuestions::Messages out;
  root.ask({{"w", kQuestionStart, {1}, {}}}, kQuestionStart, &out);
  const ControlTree::Child& one = tree.children[0];
  const auto refuses = [&](const StallAnswer& answer) {
    return !root.receive_answer(one, encode(answer), &out);
  };
  CHECK(refuses({8, 1, 1, "of another epoch"}));
  CHECK(refuses({7, 1, 2, "of another subtree"}));
  CHECK(refuses({7, 1, UINT32_MAX, "of nobody"}));
  CHECK(refuses({7, 1, 1, ""}));
  CHECK(refuses({7, 1, 1, std::string(kMostAnswerBytes + 1, 'x')}));
  CHECK_FALSE(refuses({7, 0, 1, "late"}));
  CHECK(root.take(kQuestionStart).empty());
  CHECK_FALSE(root.receive_question(encode(StallQuestion{7, 1, {}}), &out));
  CHECK_FALSE(root.receive_question(
      encode(StallQuestion{7, 1, std::vector<std::uint32_t>(kMostAsked + 1, 1)}), &out));
  CHECK_FALSE(root.receive_question(encode(StallQuestion{8, 1, {1}}), &out));
}

TEST_CASE("a stall ends the job after its limit, in the same words everywhere, told by any rank") {
  for (const milliseconds warning : {milliseconds(0), milliseconds(500), milliseconds(60000)}) {
    for (const int teller : {0, 3}) {
      CAPTURE(warning.count());
      Network network({2, 3}, with_limits(warning, milliseconds(2000)));
      for (const int rank : {1, 2, 3})
        network.nodes[static_cast<std::size_t>(rank)]->submit(tensor("w"), network.time);
      pass(network, 8);
      CHECK(network.stall_ends.empty());
      pass(network, 4);
      REQUIRE(network.stall_ends.size() == 1);
      CHECK(network.stall_ends[0].first == 0);
      const std::string words = network.stall_ends[0].second;
      CHECK(words.find("tensor 'w' has waited 2 s for ranks 0,4") == 0);
      CHECK(words.find(": rank 0 is rank 0 of the test; rank 4 is rank 4 of the test.") !=
            std::string::npos);
      CHECK(words.find("HVRUN_STALL_SHUTDOWN_SECONDS is 2 s") != std::string::npos);
      network.nodes[static_cast<std::size_t>(teller)]->end(words);
      network.settle();
      for (std::size_t rank = 0; rank < network.nodes.size(); ++rank) {
        REQUIRE(words_of(network.verdicts[rank]) == "#");
        CHECK(std::get<StallEnded>(network.verdicts[rank][0]).words == words);
        CHECK(network.nodes[rank]->is_over());
      }
      CHECK(network.stalls.empty() == (warning > milliseconds(2000) || warning.count() == 0));
    }
  }
}
