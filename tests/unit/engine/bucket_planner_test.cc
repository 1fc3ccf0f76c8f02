// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/bucket_planner.h"

#include <doctest/doctest.h>

#include "tests/unit/engine/tensor.h"

using namespace hv::runtime;

namespace {

TensorDescription floats(std::int64_t count, ElementType type = ElementType::kFloat32) {
  TensorDescription description;
  description.kind = CollectiveKind::kAllreduce;
  description.type = type;
  description.shape = {count};
  return description;
}

// One step of 4-element float tensors with these numbers, all of one phase.
void planned_step(BucketPlanner& planner, const std::vector<std::uint64_t>& numbers,
                  std::uint64_t phase = 0) {
  for (const std::uint64_t number : numbers) planner.observe(number, floats(4), phase);
}

using Plan = std::vector<BucketNumbers>;

}  // namespace

TEST_CASE("equal steps become buckets up to their size, in the order of the last step") {
  BucketPlanner planner(48);
  for (int i = 0; i < 3; ++i) planned_step(planner, {1, 2, 3, 4, 5});
  CHECK(planner.take_plan().empty());
  planned_step(planner,
               {3, 1, 2, 5, 4});  // the first step said what a step is, three more were equal
  CHECK(planner.take_plan() == Plan{{3, 1, 2}, {5, 4}});
  CHECK(planner.take_plan().empty());
}

TEST_CASE("a tensor that comes now and then stays outside and does no harm") {
  BucketPlanner planner(1000);
  for (int i = 0; i < 4; ++i) {
    planned_step(planner, {1, 2, 3});
    if (i == 2) planned_step(planner, {9});
  }
  CHECK(planner.take_plan() == Plan{{1, 2, 3}});
}

TEST_CASE("steps that differ are no plan") {
  BucketPlanner planner(1000);
  for (std::uint64_t i = 0; i < 20; ++i) planned_step(planner, {1, 2 + i % 2});
  CHECK(planner.take_plan().empty());
}

TEST_CASE("what cannot share a message, or was enqueued after a wait, is no bucket") {
  BucketPlanner planner(1000);
  for (int i = 0; i < 4; ++i) {
    const auto phase = static_cast<std::uint64_t>(2 * i);
    planner.observe(1, floats(4), phase);
    planner.observe(2, floats(4, ElementType::kFloat64), phase);
    planner.observe(3, floats(4), phase);
    planner.observe(4, floats(4), phase + 1);
    planner.observe(5, floats(300), phase + 1);  // too large
  }
  CHECK(planner.take_plan() == Plan{{1, 3}});
}

TEST_CASE("groups and what is not reduced are left alone") {
  BucketPlanner planner(1000);
  TensorDescription grouped = floats(4);
  grouped.group = 1;
  grouped.group_size = 2;
  TensorDescription gathered = floats(4);
  gathered.kind = CollectiveKind::kAllgather;
  for (int i = 0; i < 8; ++i) {
    planner.observe(1, grouped, 0);
    planner.observe(2, grouped, 0);
    planner.observe(3, gathered, 0);
    planner.observe(4, gathered, 0);
  }
  CHECK(planner.take_plan().empty());
}

TEST_CASE("each time that buckets are given up it takes twice as many equal steps") {
  BucketPlanner planner(1000);
  int needed = 3;
  for (int times = 0; times < 3; ++times) {
    for (int i = 0; i < needed; ++i) planned_step(planner, {1, 2});
    CHECK(planner.take_plan().empty());
    planned_step(planner, {1, 2});
    CHECK(planner.take_plan().size() == 1);
    planner.given_up();
    needed *= 2;
  }
}

TEST_CASE("buckets that last make the next plan come sooner again") {
  BucketPlanner planner(1000);
  for (int i = 0; i < 3; ++i) planner.given_up();  // 24 equal steps
  for (int i = 0; i < 512; ++i) planner.kept();    // 6
  for (int i = 0; i < 6; ++i) planned_step(planner, {1, 2});
  CHECK(planner.take_plan().empty());
  planned_step(planner, {1, 2});
  CHECK(planner.take_plan().size() == 1);
}

TEST_CASE("with a size of 0 nothing is planned") {
  BucketPlanner planner(0);
  for (int i = 0; i < 10; ++i) planned_step(planner, {1, 2});
  CHECK(planner.take_plan().empty());
}
