// Tests of the readiness table: numbers whose entries are evicted while they are under way.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/readiness.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::size_t kAll = 1 << 20;

TensorDescription gathered() {
  TensorDescription description;
  description.kind = CollectiveKind::kAllgather;
  description.type = ElementType::kFloat32;
  description.shape = {kVaries, 2};
  return description;
}

FreshReport report_of(const std::string& name, int rank, std::int64_t rows) {
  return {name, {{gathered(), {static_cast<std::uint32_t>(rank)}, {rows}}}};
}

// Rank 0 with rank 1 and rank 2, which leads 2 and 3; "x" is number 1 with rows 10, 11, 12, 13.
struct Node {
  Node() { cache.insert("x", gathered(), {10, 11, 12, 13}); }
  // As the decisions-th decision would.
  void evict_x(std::uint64_t decisions) {
    table.forget(cache.insert("y", gathered(), {1, 1, 1, 1}), decisions);
  }
  ControlTree tree{0, 4, -1, {{1, {1}}, {2, {2, 3}}}};
  ResponseCache cache{1};
  ReadinessTable table{tree, cache};
  TimePoint time = TimePoint{} + std::chrono::hours(1);
};

std::vector<std::int64_t> rows_by_rank(const CompleteTensor& tensor) {
  REQUIRE(tensor.variants.size() == 1);
  const Variant& variant = tensor.variants.front();
  REQUIRE(variant.ranks.size() == 4);
  std::vector<std::int64_t> rows(4);
  for (std::size_t i = 0; i < 4; ++i) rows[variant.ranks[i]] = variant.first_extents[i];
  return rows;
}

}  // namespace

TEST_CASE("numbers given before and after their eviction become the descriptions they stood for") {
  for (const int before : {0, 1, 2, 3}) {
    CAPTURE(before);
    Node node;
    const int sources[] = {1, 2, 0};
    for (int i = 0; i < before; ++i) CHECK(node.table.add_number(sources[i], 1, node.time));
    node.evict_x(1);
    for (int i = before; i < 3; ++i) CHECK(node.table.add_number(sources[i], 1, node.time));
    const auto complete = node.table.take_complete(kAll);
    REQUIRE(complete.size() == 1);
    CHECK(complete[0].number == 0);
    CHECK(complete[0].name == "x");
    CHECK(rows_by_rank(complete[0]) == std::vector<std::int64_t>{10, 11, 12, 13});
    CHECK(node.table.empty());
  }
}

TEST_CASE("an eviction after a mix was complete leaves nothing to wait for") {
  Node node;
  node.table.add_fresh(0, report_of("x", 0, 99), node.time);
  CHECK(node.table.add_number(1, 1, node.time));
  CHECK(node.table.add_number(2, 1, node.time));
  const auto complete = node.table.take_complete(kAll);
  REQUIRE(complete.size() == 1);
  CHECK(rows_by_rank(complete[0]) == std::vector<std::int64_t>{99, 11, 12, 13});
  node.evict_x(1);
  CHECK(node.table.empty());
}

TEST_CASE("an evicted number is understood until every child has heard of that, then by nobody") {
  Node node;
  node.evict_x(5);
  node.table.acknowledge(1, 5);
  CHECK(node.table.retired() == 1);
  CHECK(node.table.add_number(2, 1, node.time));
  node.table.acknowledge(2, 4);
  CHECK(node.table.retired() == 1);
  node.table.acknowledge(2, 6);
  CHECK(node.table.retired() == 0);
  CHECK_FALSE(node.table.add_number(2, 1, node.time));
  CHECK_FALSE(node.table.add_number(2, 77, node.time));
}

TEST_CASE("what is complete comes out in pieces of a message, at least one tensor at a time") {
  Node node;
  for (const std::string name : {"a", "b", "c"}) {
    for (const int rank : {0, 1}) node.table.add_fresh(rank, report_of(name, rank, 1), node.time);
    node.table.add_fresh(2, {name, {{gathered(), {2, 3}, {1, 1}}}}, node.time);
  }
  CHECK(node.table.take_complete(1).size() == 1);
  CHECK(node.table.has_complete());
  const auto rest = node.table.take_complete(kAll);
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].name == "b");
  CHECK_FALSE(node.table.has_complete());
}
