// The pure parts below the collectives: walks over segments, turns on rings, cuts, the choice of an
// algorithm.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/registry.h"
#include "runtime/collective/ring_queue.h"
#include "runtime/collective/segment_walk.h"
#include "runtime/transport/placement.h"

namespace hv::runtime {
namespace {

CollectiveRequest request_of(CollectiveKind kind, std::int64_t count) {
  CollectiveRequest request;
  request.kind = kind;
  request.segments = {{nullptr, nullptr, count}};
  return request;
}

}  // namespace

TEST_CASE("segment_walk visits a range of uneven segments piece by piece, skipping empty ones") {
  std::vector<std::byte> memory(64);
  const std::vector<Segment> segments = {
      {&memory[0], &memory[0], 3}, {&memory[8], &memory[8], 0}, {&memory[16], &memory[16], 5}};
  SegmentWalk walk(segments, 2);
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> seen;
  const auto note = [&](const std::byte* input, std::byte* output, std::size_t bytes) {
    CHECK(input == output);
    seen.emplace_back(input - memory.data(), bytes);
  };
  walk.visit(2, 8, note);
  walk.visit(12, 4, note);
  CHECK(seen == std::vector<std::pair<std::ptrdiff_t, std::size_t>>{{2, 4}, {16, 4}, {22, 4}});
  CHECK(total_elements(segments) == 8);
}

TEST_CASE("ring_queue gives out block numbers in order and one turn at a time") {
  RingQueue queue;
  const RingTurn first = queue.take(0, 3), second = queue.take(0, 2), elsewhere = queue.take(1, 9);
  CHECK(first.first_block == 0);
  CHECK(second.first_block == 3);
  CHECK(elsewhere.first_block == 0);
  CHECK(queue.is_up(first));
  CHECK_FALSE(queue.is_up(second));
  CHECK(queue.is_up(elsewhere));
  queue.finish(first);
  CHECK(queue.is_up(second));
}

TEST_CASE("small operations take turns on the rings that large ones do not use") {
  RingQueue queue;
  CHECK(queue.choose(1 << 20) == 0);
  std::vector<int> rings;
  for (int i = 0; i < 4; ++i) rings.push_back(queue.choose(4));
  CHECK(rings == std::vector<int>{1, 2, 3, 1});
}

TEST_CASE("cut covers everything once, at cache lines, whatever the sizes") {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000, 131072}) {
    for (const int parts : {1, 2, 3, 7, 8}) {
      std::size_t next = 0;
      for (int index = 0; index < parts; ++index) {
        const Range range = cut(bytes, parts, index);
        CHECK(range.begin == next);
        CHECK((range.begin % 64 == 0 || range.begin == bytes));
        next = range.begin + range.size;
      }
      CHECK(next == bytes);
    }
  }
}

TEST_CASE("blocks hold whole elements and fit into a slot") {
  CollectiveRequest request = request_of(CollectiveKind::kAllreduce, 1001);
  request.type = ElementType::kFloat64;
  const BlockPlan plan = plan_blocks(request, 4100);
  CHECK(plan.block_bytes == 4096);
  CHECK(plan.blocks == 2);
  CHECK(plan.size(0) + plan.size(1) == 8008);
  CHECK(plan_blocks(request_of(CollectiveKind::kAllreduce, 0), 4096).blocks == 0);
}

TEST_CASE("lanes are as many as the smallest host has ranks, and join equal local ranks") {
  const Topology topology = make_topology(3, {0, 0, 0, 1, 1});
  CHECK(lanes_of(topology) == 2);
  CHECK(lane_ranks(topology, 1) == std::vector<int>{1, 4});
  CHECK(host_index(topology) == 1);
}

TEST_CASE("registry and contract's table name the same algorithms") {
  std::set<std::string> registered, in_table;
  for (const Algorithm& each : algorithms())
    registered.insert(std::string(each.collective) + ":" + std::string(each.name));
  for (const CrossAlgorithm& each : cross_algorithms())
    registered.insert("cross:" + std::string(each.name));
  for (const AlgorithmRow& row : algorithm_table())
    in_table.insert(std::string(row.collective) + ":" + std::string(row.name));
  CHECK(registered == in_table);
  CollectiveRequest request;
  request.kind = CollectiveKind::kAlltoall;
  CHECK(contract_name(request) == "alltoall");
  request.kind = CollectiveKind::kJoin;
  CHECK(contract_name(request).empty());
  request.kind = CollectiveKind::kAllreduce;
  CHECK(contract_name(request) == "allreduce");
  request.compression = Compression::kFloat16;
  CHECK(contract_name(request) == "compressed");
  request.compression = Compression::kNone;
  request.reduction = Reduction::kAdasum;
  CHECK(contract_name(request) == "adasum");
  CHECK(extent_of(make_topology(0, {0, 0, 1})).ranks == 3);
  CHECK(extent_of(make_topology(0, {0, 0, 1})).hosts == 2);
}

}  // namespace hv::runtime
