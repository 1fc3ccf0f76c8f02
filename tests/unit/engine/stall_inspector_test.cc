// Tests of when stalls are told.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/stall_inspector.h"

#include <doctest/doctest.h>

#include "runtime/engine/tensor_description.h"

using namespace hv;
using namespace hv::runtime;
using std::chrono::seconds;

namespace {

const TimePoint kInspectorStart = TimePoint{} + std::chrono::hours(1);
const std::vector<int> kMembers = {0, 1, 2, 3, 4, 5, 6, 7};
constexpr int kRanks = 8;

}  // namespace

TEST_CASE("a stall is told once for each cause") {
  StallInspector inspector{seconds(60)};
  const auto told = [&](const Waiting& stall) { return inspector.news({stall}).size() == 1; };
  Waiting w{"w", kInspectorStart, {1, 2}, {}};
  CHECK(told(w));
  CHECK_FALSE(told(w));
  w.missing = {1};  // rank 2 has come
  CHECK(told(w));
  CHECK_FALSE(told(w));
  w.standing = {{1, kNoAnswer}};
  CHECK_FALSE(told(w));
  w.standing = {{1, "last enqueued 'v' 2 s ago"}};
  CHECK(told(w));
  w.standing = {{1, "last enqueued 'v' 4 s ago"}};
  CHECK_FALSE(told(w));
  w.since += seconds(1);  // another wait of that name
  CHECK(told(w));
  CHECK(told({"v", kInspectorStart, {1}, {}}));
  // It completes, and waits again.
  inspector.inspect({}, kInspectorStart);
  CHECK(told(w));
}

TEST_CASE("a stall is due at the limit, then at twice, four times, eight times it") {
  StallInspector inspector{seconds(60)};
  std::vector<int> told;
  for (int second = 0; second <= 500; second += 5) {
    if (!inspector.inspect({{"w", kInspectorStart, {1}, {}}}, kInspectorStart + seconds(second))
             .empty())
      told.push_back(second);
  }
  CHECK(told == std::vector<int>{60, 120, 240, 480});
}

TEST_CASE("a tensor that completed and stalls again is told at the limit again") {
  StallInspector inspector{seconds(10)};
  CHECK(
      inspector.inspect({{"w", kInspectorStart, {1}, {}}}, kInspectorStart + seconds(10)).size() ==
      1);
  CHECK(inspector.inspect({}, kInspectorStart + seconds(11)).empty());
  const TimePoint later = kInspectorStart + seconds(12);
  CHECK(inspector.inspect({{"w", later, {1}, {}}}, later + seconds(9)).empty());
  CHECK(inspector.inspect({{"w", later, {1}, {}}}, later + seconds(10)).size() == 1);
}

TEST_CASE("only those that wait too long are told") {
  StallInspector inspector{seconds(10)};
  const auto due = inspector.inspect(
      {{"old", kInspectorStart, {1}, {}}, {"new", kInspectorStart + seconds(5), {2}, {}}},
      kInspectorStart + seconds(12));
  REQUIRE(due.size() == 1);
  CHECK(due[0].name == "old");
}

TEST_CASE("it looks four times within the limit, and never with a limit of zero") {
  StallInspector inspector{seconds(60)};
  CHECK(inspector.is_due(kInspectorStart));
  inspector.inspect({}, kInspectorStart);
  CHECK_FALSE(inspector.is_due(kInspectorStart + seconds(14)));
  CHECK(inspector.is_due(kInspectorStart + seconds(15)));
  StallInspector never{Duration::zero()};
  CHECK_FALSE(never.is_due(kInspectorStart));
  CHECK(never.next_look() == TimePoint::max());
}

TEST_CASE("the words name tensor, time and ranks") {
  const std::string words = stall_words({"w", kInspectorStart, {3, 5, 6, 7}, {}}, kMembers, kRanks,
                                        kInspectorStart + seconds(61));
  CHECK(words.find(
            "tensor 'w' has waited 61 s for ranks 3,5-7; it is ready on the other 4 of 8 ranks") ==
        0);
}

TEST_CASE("the words tell who has not said which of its ranks are ready") {
  const std::string words = stall_words({"w", kInspectorStart, {2, 3}, {2}}, kMembers, kRanks,
                                        kInspectorStart + seconds(61));
  CHECK(
      words.find("for ranks 2-3, some of which may have it: nothing was heard of it from rank 2") !=
      std::string::npos);
}

TEST_CASE("tensors that wait for the same ranks are one line, the oldest of them in full") {
  std::vector<Waiting> stalls;
  for (const char* name : {"e", "d", "c", "b"}) stalls.push_back({name, kInspectorStart, {3}, {}});
  stalls.push_back({"late", kInspectorStart, {3, 4}, {}});
  stalls.push_back({"unheard", kInspectorStart, {3}, {3}});
  stalls.push_back({"a", kInspectorStart - seconds(1), {3}, {}, {{3, "sleeps"}}});
  const auto lines =
      stall_lines(stalls, kMembers, kRanks, seconds(90), kInspectorStart + seconds(60));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        "tensor 'a' and 4 more ('b', 'c', 'd', ...) have waited up to 61 s for rank 3; they are "
        "ready on the other 7 of 8 ranks. Those that miss them may be slow, or take another path "
        "through the program: rank 3 sleeps. HVRUN_STALL_SHUTDOWN_SECONDS ends the job at 90 s");
  CHECK(lines[1].find("tensor 'late' has waited 60 s for ranks 3-4; it is ready") == 0);
  CHECK(lines[2].find("tensor 'unheard' has waited 60 s for rank 3, some") == 0);
  CHECK(lines[1].find("HVRUN_") == std::string::npos);
}

TEST_CASE(
    "where nothing ends a stall the first line says what would, but not of a rank's joining") {
  const std::vector<Waiting> stalls{{kJoinName, kInspectorStart, {3}, {}},
                                    {"w", kInspectorStart, {3}, {}}};
  const auto lines = stall_lines(stalls, kMembers, kRanks, {}, kInspectorStart + seconds(60));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("HVRUN_") == std::string::npos);
  CHECK(lines[1].find(". Nothing ends this wait; HVRUN_STALL_SHUTDOWN_SECONDS=300 would") !=
        std::string::npos);
  CHECK(stall_lines({}, kMembers, kRanks, {}, kInspectorStart).empty());
}

TEST_CASE("a silent parent is told at 1.5 times the limit, and again after a word") {
  ParentWatch watch{seconds(10)};
  watch.heard(kInspectorStart - seconds(100));  // before anybody waited
  std::vector<int> told;
  for (int second = 0; second <= 60; ++second) {
    if (watch.inspect(kInspectorStart, kInspectorStart + seconds(second))) told.push_back(second);
  }
  CHECK(told == std::vector<int>{15});
  watch.heard(kInspectorStart + seconds(61));
  CHECK_FALSE(watch.inspect(kInspectorStart, kInspectorStart + seconds(75)));
  CHECK(watch.inspect(kInspectorStart, kInspectorStart + seconds(76)) == seconds(15));
  CHECK_FALSE(
      ParentWatch{Duration::zero()}.inspect(kInspectorStart, kInspectorStart + seconds(1000)));
}
