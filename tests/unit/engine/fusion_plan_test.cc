// Tests of which tensors travel together.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/fusion_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace hv::runtime;
using Groups = std::vector<std::vector<std::size_t>>;

namespace {

TensorDescription planned_allreduce(ElementType type, std::int64_t count,
                                    Reduction reduction = Reduction::kSum) {
  TensorDescription description;
  description.kind = CollectiveKind::kAllreduce;
  description.type = type;
  description.reduction = reduction;
  description.shape = {count};
  return description;
}

Groups plan(const std::vector<TensorDescription>& tensors, std::int64_t threshold) {
  std::vector<const TensorDescription*> pointers;
  for (const auto& tensor : tensors) pointers.push_back(&tensor);
  return plan_fusion(pointers, threshold);
}

constexpr auto kSingle = ElementType::kFloat32;
constexpr auto kHalf = ElementType::kFloat16;

}  // namespace

TEST_CASE("nothing ready is nothing to do") { CHECK(plan({}, 1000).empty()); }

TEST_CASE("a half-precision tensor between two singles breaks neither run") {
  CHECK(plan({planned_allreduce(kSingle, 1), planned_allreduce(kHalf, 1),
              planned_allreduce(kSingle, 1), planned_allreduce(kHalf, 1)},
             1000) == Groups{{0, 2}, {1, 3}});
}

TEST_CASE("a group holds up to the threshold and not a byte more") {
  const std::vector<TensorDescription> three(3, planned_allreduce(kSingle, 10));
  CHECK(plan(three, 120) == Groups{{0, 1, 2}});
  CHECK(plan(three, 119) == Groups{{0, 1}, {2}});
  CHECK(plan(three, 79) == Groups{{0}, {1}, {2}});
}

TEST_CASE("a tensor over the threshold travels alone and breaks no run") {
  CHECK(plan({planned_allreduce(kSingle, 1), planned_allreduce(kSingle, 1000),
              planned_allreduce(kSingle, 1)},
             100) == Groups{{0, 2}, {1}});
}

TEST_CASE("a threshold of zero fuses nothing, not even empty tensors") {
  CHECK(plan({planned_allreduce(kSingle, 1), planned_allreduce(kSingle, 0),
              planned_allreduce(kSingle, 0)},
             0) == Groups{{0}, {1}, {2}});
}

TEST_CASE("other reductions and scales do not share a group") {
  TensorDescription scaled = planned_allreduce(kSingle, 1);
  scaled.prescale = 2;
  CHECK(plan({planned_allreduce(kSingle, 1), planned_allreduce(kSingle, 1, Reduction::kMax), scaled,
              planned_allreduce(kSingle, 1)},
             100) == Groups{{0, 3}, {1}, {2}});
}

TEST_CASE("only allreduces are fused") {
  TensorDescription broadcast = planned_allreduce(kSingle, 1);
  broadcast.kind = CollectiveKind::kBroadcast;
  CHECK(plan({broadcast, broadcast}, 100) == Groups{{0}, {1}});
}

TEST_CASE("every tensor is in one group, groups hold one kind, in order and within the threshold") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<TensorDescription> tensors;
    const int count = static_cast<int>(random() % 50);
    for (int i = 0; i < count; ++i) {
      tensors.push_back(planned_allreduce(random() % 2 ? kSingle : kHalf, random() % 40));
    }
    std::vector<bool> seen(tensors.size());
    for (const auto& group : plan(tensors, 100)) {
      std::int64_t bytes = 0;
      for (std::size_t i = 0; i < group.size(); ++i) {
        CHECK_FALSE(seen[group[i]]);
        seen[group[i]] = true;
        CHECK(tensors[group[i]].type == tensors[group[0]].type);
        if (i > 0) CHECK(group[i] > group[i - 1]);
        bytes += tensors[group[i]].bytes();
      }
      CHECK((bytes <= 100 || group.size() == 1));
    }
    CHECK(std::count(seen.begin(), seen.end(), false) == 0);
  }
}

TEST_CASE("adasum tensors travel alone: their dot products are their own") {
  const TensorDescription adasum = planned_allreduce(kSingle, 1, Reduction::kAdasum);
  CHECK(plan({adasum, planned_allreduce(kSingle, 1), adasum, planned_allreduce(kSingle, 1)},
             1000) == Groups{{0}, {1, 3}, {2}});
}

TEST_CASE("a tensor in memory that ranks have allocated together travels alone") {
  TensorDescription there = planned_allreduce(kSingle, 1);
  there.memory = MemoryKind::kCuda;
  const TensorDescription elsewhere = there;
  there.window = 1;
  CHECK(plan({elsewhere, there, elsewhere, there}, 1000) == Groups{{0, 2}, {1}, {3}});
  CHECK(!can_share(elsewhere, there));
}
