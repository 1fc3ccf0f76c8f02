// Bucket planner: which tensors the ranks have ready together, step after step, so that they can be
// told of with one number. SPDX-License-Identifier: Apache-2.0
//
// Only the root of the control tree plans; what it plans it announces. It sees the tensors in the
// order in which it has decided on them. A training step is a run of tensors that comes again: when
// the same ones have come several times, those of one step that may share a message become buckets,
// in their order. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "runtime/engine/tensor_description.h"

namespace hv::runtime {

// By numbers in the response cache, in the order in which they travel.
using BucketNumbers = std::vector<std::uint64_t>;

class BucketPlanner {
 public:
  // most_bytes: of one bucket; 0: plans nothing.
  explicit BucketPlanner(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  // A cached tensor that was decided on. phase: how often this rank's callers had waited for
  // something before they enqueued it. What they wait for in between cannot be held back until the
  // rest is there, so no bucket has tensors of two phases.
  void observe(std::uint64_t number, const TensorDescription& description, std::uint64_t phase);
  // Buckets of two or more tensors each, once enough equal steps have passed; else none.
  std::vector<BucketNumbers> take_plan();
  // A bucket was whole: after many of those the next plan takes fewer equal steps again.
  void kept();
  // A rank did something else: the next plan takes twice as many equal steps.
  void given_up();

 private:
  struct Seen {
    std::uint64_t number;
    TensorDescription description;
    std::uint64_t phase;
  };

  void end_step();
  void make_plan();

  const std::int64_t most_bytes_;
  std::size_t steps_needed_ = 3;
  std::size_t equal_steps_ = 0;
  std::size_t kept_ = 0;
  std::unordered_set<std::uint64_t> previous_;  // the tensors of a step, as far as is known
  std::unordered_set<std::uint64_t> current_;
  std::size_t found_ = 0;    // of previous_ in the current step
  std::vector<Seen> order_;  // the current step
  std::vector<BucketNumbers> plan_;
};

}  // namespace hv::runtime
