// Tests of launcher/output/alike and of gathering by it.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/alike.h"

#include <doctest/doctest.h>

#include <random>

#include "launcher/output/gather.h"

using namespace hv::launcher;
using Lines = std::vector<std::string>;

namespace {

const Speaker kZero{0, 4100, "node1"}, kOne{1, 4251, "node2"};

bool alike(const std::string& of_zero, const std::string& of_one) {
  const bool is = are_alike(of_zero, kZero, of_one, kOne);
  CHECK(are_alike(of_one, kOne, of_zero, kZero) == is);
  return is;
}

}  // namespace

TEST_CASE("lines are alike that differ in the rank's number, pid, host, addresses and times") {
  CHECK(alike("[rank0]: Traceback", "[rank1]: Traceback"));
  CHECK(alike("rank 0 on node1 (pid 4100)", "rank 1 on node2 (pid 4251)"));
  CHECK(alike("W1127 00:12:59.123 x", "W1127 00:13:00.5 x"));
  CHECK(alike("2026-11-27 00:12:59,1 no", "2026-11-27 00:13:07,22 no"));
  CHECK(alike("bind 10.0.0.7:29500", "bind 10.0.0.12:31001"));
  CHECK(alike("<Model at 0x7f10a4000b20>", "<Model at 0x7f3344112280>"));
}

TEST_CASE("lines are not alike that differ in anything else") {
  CHECK(!alike("line 3, in step", "line 4, in step"));
  CHECK(!alike("loss 0.25", "loss 0.26"));
  CHECK(!alike("CUDA error 2", "CUDA error 1"));
  CHECK(!alike("rank 0", "rank 10"));
  CHECK(!alike("rank 0", "rank 1 "));
  CHECK(!alike("node1", "node20"));
  CHECK(!alike("torch 2.1.0", "torch 2.2.0"));
  CHECK(!alike("0x10", "0x20"));
}

TEST_CASE("what is the same is alike even where it looks like one speaker's own") {
  CHECK(alike("exit code 0, 1; node1 node2 pid 4100", "exit code 0, 1; node1 node2 pid 4100"));
  CHECK(alike("exit code 1 of rank 0", "exit code 1 of rank 1"));
}

TEST_CASE(
    "one text told by any two ranks with their own numbers is alike, and never what differs") {
  std::mt19937 random(20261127);
  const Lines fixed{"Traceback ", "File \"a.py\", line 12", ": ", "0", "1.5", "[", "]", "e=2 "};
  const auto own = [&](int kind, const Speaker& by) -> std::string {
    switch (kind) {
      case 0:
        return "r" + std::to_string(by.rank) + ";";
      case 1:
        return "pid=" + std::to_string(by.pid) + ";";
      case 2:
        return " " + by.host + " ";
      case 3:
        return " 12:0" + std::to_string(random() % 10) + ":33 ";
      default:
        return " 0x7f" + std::to_string(100000 + random() % 900000) + " ";
    }
  };
  for (int round = 0; round < 3000; ++round) {
    const auto speaker = [&] {
      const int rank = static_cast<int>(random() % 2000);
      return Speaker{rank, static_cast<std::uint32_t>(10000 + random() % 100000),
                     "host" + std::to_string(rank / 8)};
    };
    const Speaker one = speaker(), other = speaker();
    std::string by_one, by_other;
    for (int i = 0; i < 12; ++i) {
      if (random() % 2 == 0) {
        const std::string& piece = fixed[random() % fixed.size()];
        by_one += piece;
        by_other += piece;
      } else {
        const int kind = static_cast<int>(random() % 5);
        by_one += own(kind, one);
        by_other += own(kind, other);
      }
    }
    CAPTURE(by_one);
    CAPTURE(by_other);
    CHECK(are_alike(by_one, one, by_other, other));
    CHECK(are_alike(by_other, other, by_one, one));
    CHECK(!are_alike(by_one + "x", one, by_other + "y", other));
    CHECK(!are_alike("x" + by_one, one, by_other, other));
  }
}

TEST_CASE("texts that are alike are gathered under their first rank, with all that said them") {
  const auto line = [](int rank) { return "[rank" + std::to_string(rank) + "]: no"; };
  const auto groups = gather_alike(
      {{0, {line(0)}}, {1, {line(1)}}, {2, {"other"}}, {3, {line(3)}}, {4, {"other"}}, {5, {}}},
      {{0}, {1}, {2}, {3}, {4}});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].ranks == std::vector<int>{0, 1, 3});
  CHECK(groups[0].lines == Lines{line(0)});
  CHECK(!groups[0].is_said_by_all);
  CHECK(groups[1].ranks == std::vector<int>{2, 4});
  CHECK(groups[1].is_said_by_all);
}

TEST_CASE("every rank with words is in one group, however many differ") {
  std::vector<std::pair<int, Lines>> words;
  std::vector<Speaker> speakers;
  for (int rank = 0; rank < 3000; ++rank) {
    words.push_back(
        {rank, {"loss " + std::to_string(1000 - rank % 500) + " at " + std::to_string(rank)}});
    speakers.push_back({rank});
  }
  std::size_t ranks = 0;
  for (const GatheredText& group : gather_alike(words, speakers)) ranks += group.ranks.size();
  CHECK(ranks == 3000);
}
