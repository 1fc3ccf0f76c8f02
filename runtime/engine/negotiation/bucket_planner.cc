// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/bucket_planner.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/negotiation/fusion_plan.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kLeastSteps = 3;
constexpr std::size_t kLastingBuckets = 256;
constexpr std::size_t kMostSteps = 1024;       // that must be equal before a plan
constexpr std::size_t kMostTensors = 1 << 20;  // of a step

}  // namespace

void BucketPlanner::observe(std::uint64_t number, const TensorDescription& description,
                            std::uint64_t phase) {
  if (most_bytes_ == 0 || !reduces(description.kind) || description.group != 0) return;
  // Again, before all of the last step came: the steps differ.
  const bool differs = current_.count(number) > 0 || current_.size() == kMostTensors;
  if (differs) {
    previous_ = std::exchange(current_, {});
    equal_steps_ = 0;
    end_step();
  }
  current_.insert(number);
  order_.push_back({number, description, phase});
  if (previous_.count(number) > 0 && ++found_ == previous_.size()) {
    if (++equal_steps_ >= steps_needed_) make_plan();
    end_step();
  }
}

void BucketPlanner::end_step() {
  current_.clear();
  order_.clear();
  found_ = 0;
}

// What came by the way, and not in every step, stays out.
void BucketPlanner::make_plan() {
  std::erase_if(order_, [&](const Seen& seen) { return previous_.count(seen.number) == 0; });
  for (auto begin = order_.begin(); begin != order_.end();) {
    const auto end = std::find_if(begin, order_.end(),
                                  [&](const Seen& seen) { return seen.phase != begin->phase; });
    std::vector<const TensorDescription*> tensors;
    for (auto seen = begin; seen != end; ++seen) tensors.push_back(&seen->description);
    for (const auto& members : plan_fusion(tensors, most_bytes_)) {
      if (members.size() < 2) continue;
      BucketNumbers& bucket = plan_.emplace_back();
      for (const std::size_t i : members)
        bucket.push_back((begin + static_cast<std::ptrdiff_t>(i))->number);
    }
    begin = end;
  }
  previous_.clear();
  equal_steps_ = 0;
}

std::vector<BucketNumbers> BucketPlanner::take_plan() { return std::exchange(plan_, {}); }

void BucketPlanner::kept() {
  if (++kept_ % kLastingBuckets == 0) steps_needed_ = std::max(steps_needed_ / 2, kLeastSteps);
}

void BucketPlanner::given_up() {
  steps_needed_ = std::min(2 * steps_needed_, kMostSteps);
  equal_steps_ = 0;
  previous_.clear();
  plan_.clear();
  end_step();
}

}  // namespace hv::runtime
