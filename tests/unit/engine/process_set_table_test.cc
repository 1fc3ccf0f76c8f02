// The table of process sets: what it refuses, what it gives out, and that it is the same
// everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/process_set_table.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace hv;
using namespace hv::runtime;

namespace {

std::string refusal_of(ProcessSetTable& table, std::vector<int> members) {
  const ProcessSet* added = nullptr;
  const Status status = table.add(std::move(members), &added);
  CHECK(status.code == StatusCode::kArgument);
  CHECK(added == nullptr);
  return status.message;
}

const ProcessSet& add(ProcessSetTable& table, std::vector<int> members) {
  const ProcessSet* added = nullptr;
  const Status status = table.add(std::move(members), &added);
  REQUIRE_MESSAGE(status.ok(), status.message);
  return *added;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("set 0 is that of all ranks, and stays") {
  ProcessSetTable table(4, 8, 8);
  REQUIRE(table.find(0) != nullptr);
  CHECK(table.find(0)->members() == std::vector<int>{0, 1, 2, 3});
  CHECK(table.find(0)->place.cells.empty());  // the first of everybody
  CHECK(table.find(0)->place.lanes == 0);
  CHECK(contains(table.remove(0).message, "lives as long as the job"));
  CHECK(table.find(0) != nullptr);
}

TEST_CASE("members come in any order and are kept ascending, cells are each member's own") {
  ProcessSetTable table(4, 8, 8);
  const ProcessSet& first = add(table, {3, 1});
  CHECK(first.number == 1);
  CHECK(first.members() == std::vector<int>{1, 3});
  CHECK(first.place.cells == std::vector<int>{1, 1});
  const ProcessSet& second = add(table, {0, 3});
  CHECK(second.place.lanes == 2);
  CHECK(second.place.cells == std::vector<int>{1, 2});
}

TEST_CASE("what is no set is refused in words, and changes nothing") {
  ProcessSetTable table(4, 3, 2);
  CHECK(contains(refusal_of(table, {}), "at least one"));
  CHECK(contains(refusal_of(table, {1, 4}), "rank 4 is not among the job's 4"));
  CHECK(contains(refusal_of(table, {-1}), "rank -1"));
  CHECK(contains(refusal_of(table, {2, 1, 2}), "rank 2 is named twice"));
  CHECK(contains(refusal_of(table, {3, 2, 1, 0}), "set 0 has the same"));
  CHECK(table.all().size() == 1);
  add(table, {0, 1});
  CHECK(contains(refusal_of(table, {1, 2}), "rank 1 is in 2 sets already"));
  CHECK(add(table, {2, 3}).number == 2);  // a refusal uses no number
  CHECK(contains(refusal_of(table, {2}), "there are 3 already"));
  CHECK(contains(table.remove(7).message, "none of that number"));
}

TEST_CASE("a removed set's lanes and cells are given again, its number never") {
  ProcessSetTable table(4, 3, 2);
  add(table, {0, 1});
  add(table, {2, 3});
  REQUIRE(table.remove(1).ok());
  CHECK(table.find(1) == nullptr);
  const ProcessSet& next = add(table, {0, 1});
  CHECK(next.number == 3);
  CHECK(next.place.lanes == 1);
  CHECK(next.place.cells == std::vector<int>{1, 1});
}

TEST_CASE("no two sets share lanes, nor a cell of one rank, whatever comes and goes") {
  std::mt19937 random(7);
  ProcessSetTable table(6, 12, 5);
  for (int round = 0; round < 3000; ++round) {
    if (random() % 3 == 0 && table.all().size() > 1) {
      auto victim = table.all().begin();
      std::advance(victim, 1 + random() % (table.all().size() - 1));
      REQUIRE(table.remove(victim->first).ok());
    } else {
      std::vector<int> members;
      for (int rank = 0; rank < 6; ++rank)
        if (random() % 2) members.push_back(rank);
      const ProcessSet* added = nullptr;
      (void)table.add(members, &added);
    }
    std::set<int> lanes;
    std::set<std::pair<int, int>> cells;
    for (const auto& [number, set] : table.all()) {
      REQUIRE(lanes.insert(set.place.lanes).second);
      REQUIRE(set.place.lanes < 12);
      REQUIRE(set.place.cells.size() == (number == 0 ? 0 : set.members().size()));
      for (std::size_t i = 0; i < set.place.cells.size(); ++i) {
        REQUIRE(set.place.cells[i] > 0);  // the first is that of set 0
        REQUIRE(cells.insert({set.members()[i], set.place.cells[i]}).second);
        REQUIRE(set.place.cells[i] < 5);
      }
    }
  }
}
