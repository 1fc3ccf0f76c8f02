// The negotiation under random programs: messages arrive in any order between edges, the cache is
// small, and allgathers change their extents.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kRounds = 16;
const std::vector<std::string> kRandomNames{"t0", "t1", "t2", "g0", "g1", "g2"};

// What a rank submits under a name the time-th time, from 1. t0 changes its shape from use to use,
// g0 and g1 their rows on one rank only, which leads others in some jobs, g2 on all now and then.
Submission submission(const std::string& name, std::size_t rank, int time) {
  if (name[0] == 't') return tensor(name, name == "t0" ? time : 4);
  const auto own = static_cast<std::int64_t>(rank);
  if (name == "g0") return gather(name, rank == 2 ? time / 2 : own);
  if (name == "g1") return gather(name, rank == 1 ? time / 2 : own);
  return gather(name, own + (name == "g2" ? time / 3 : 0));
}

// Each rank walks through its own order of the names, round by round, submitting a name again only
// once its last use has been decided on, as a program would.
class Program {
 public:
  // shuffles: of a hundred rounds of a rank so many have an order of their own.
  Program(Network& network, std::mt19937_64& random, std::uint64_t shuffles) : network_(network) {
    todo_.resize(network.nodes.size());
    submitted_.resize(network.nodes.size());
    for (auto& own : todo_) {
      for (int round = 0; round < kRounds; ++round) {
        std::vector<std::string> names = kRandomNames;
        if (random() % 100 < shuffles) std::shuffle(names.begin(), names.end(), random);
        own.insert(own.end(), names.begin(), names.end());
      }
    }
  }

  bool is_done() const {
    return std::all_of(todo_.begin(), todo_.end(), [](const auto& own) { return own.empty(); });
  }

  // The rank submits its next tensor; if its name is in flight still, it waits for that.
  void go_on(std::size_t rank) {
    if (todo_[rank].empty()) return;
    const std::string name = todo_[rank].back();
    int& times = submitted_[rank][name];
    if (times > starts(rank, name)) return network_.nodes[rank]->await(name);
    todo_[rank].pop_back();
    network_.nodes[rank]->submit(submission(name, rank, ++times), network_.time);
  }

  // In the end every rank waits for everything.
  void settle() {
    for (auto& node : network_.nodes)
      for (const std::string& name : kRandomNames) node->await(name);
    network_.settle();
  }

  // Everything was started once per use on every rank, alike, with what each rank submitted.
  void verify() const {
    CHECK(is_done());
    const std::string expected = words_of(network_.verdicts[0]);
    for (const auto& verdicts : network_.verdicts) {
      CHECK(words_of(verdicts) == expected);
      verify_extents(verdicts);
    }
    for (const std::string& name : kRandomNames) CHECK(starts(0, name) == kRounds);
    // Nothing is left that could stall.
    for (const auto& node : network_.nodes) CHECK(node->next_look() == TimePoint::max());
  }

 private:
  int starts(std::size_t rank, const std::string& name) const {
    int count = 0;
    for (const Verdict& verdict : network_.verdicts[rank]) {
      for (const auto& other : std::get<StartGroup>(verdict).tensors) count += other.name == name;
    }
    return count;
  }
  void verify_extents(const std::vector<Verdict>& verdicts) const {
    std::map<std::string, int> times;
    for (const Verdict& verdict : verdicts) {
      for (const auto& started : std::get<StartGroup>(verdict).tensors) {
        const int time = ++times[started.name];
        for (std::size_t rank = 0; rank < started.first_extents.size(); ++rank)
          CHECK(started.first_extents[rank] == submission(started.name, rank, time).first_extent);
      }
    }
  }

  Network& network_;
  std::vector<std::vector<std::string>> todo_;
  std::vector<std::map<std::string, int>> submitted_;
};

}  // namespace

TEST_CASE(
    "random submissions in random order with random delays start alike on all ranks, each once") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    NegotiationConfig config;
    config.cache_capacity = random() % 2 ? random() % 5 : 16;
    config.fusion_threshold_bytes = random() % 2 ? 64 : 0;
    config.message_bytes = random() % 2 ? 1 : 1 << 20;
    Network network(kJobs[seed % kJobs.size()], config);
    const std::uint64_t slowness = 1 + random() % 4;
    Program program(network, random, random() % 2 ? 100 : 10);
    for (int step = 0; step < 20000 && !program.is_done(); ++step) {
      const std::size_t rank = random() % network.nodes.size();
      if (random() % 3 == 0) program.go_on(rank);
      if (random() % 2 == 0) network.conclude(static_cast<int>(rank));
      if (random() % slowness == 0) network.deliver(random);
    }
    program.settle();
    program.verify();
  }
}

TEST_CASE("an entry evicted while a mix on it is under way leaves nothing behind") {
  // Two hosts of 1 and 2 ranks, room for one entry. Rank 1, which leads rank 2, has other rows for
  // x than before, rank 2 the same: so rank 1 completes a mix, while y pushes x out.
  Network network({1, 2}, {.cache_capacity = 1});
  for (int rank = 0; rank < 3; ++rank)
    network.nodes[static_cast<std::size_t>(rank)]->submit(gather("x", 1), network.time);
  network.settle();
  for (std::int64_t use = 0; use < 3; ++use) {
    const std::int64_t rows[] = {1, 5 + use, use == 2 ? 9 : 1};
    for (const std::size_t rank : {1u, 2u})
      network.nodes[rank]->submit(gather("x", rows[rank]), network.time);
    network.settle();
    network.submit_everywhere(tensor("y"));
    network.settle();
    network.nodes[0]->submit(gather("x", rows[0]), network.time);
    network.settle();
    for (const auto& verdicts : network.verdicts) {
      REQUIRE(verdicts.size() == static_cast<std::size_t>(3 + 2 * use));
      CHECK(std::get<StartGroup>(verdicts.back()).tensors[0].first_extents ==
            std::vector<std::int64_t>(rows, rows + 3));
    }
    for (const auto& node : network.nodes) CHECK(node->next_look() == TimePoint::max());
  }
}

TEST_CASE(
    "reports and decisions over the limit go in several messages, in the same order for all") {
  Network network({2, 2}, {.fusion_threshold_bytes = 0, .message_bytes = 1000});
  for (int i = 0; i < 100; ++i)
    network.submit_everywhere(tensor(std::to_string(i) + std::string(100, 'n')));
  network.settle();
  CHECK(network.largest_message < 2000);
  for (const auto& verdicts : network.verdicts) {
    CHECK(verdicts.size() == 100);
    CHECK(words_of(verdicts) == words_of(network.verdicts[0]));
  }
}

TEST_CASE("many stalls to tell go in several messages") {
  Network network({1, 2}, {.stall_limit = std::chrono::milliseconds(1000), .message_bytes = 1000});
  for (int i = 0; i < 100; ++i)
    network.nodes[2]->submit(tensor(std::to_string(i) + std::string(100, 'n')), network.time);
  for (int tick = 0; tick < 8; ++tick) {
    network.settle();
    network.time += std::chrono::milliseconds(250);
  }
  CHECK(network.stalls.size() == 100);
  CHECK(network.largest_message < 2000);
}
