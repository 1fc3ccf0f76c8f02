// What the allreduce algorithms share: block sizes, the finish, copying in and out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/collective/ring_collective.h"
#include "runtime/collective/segment_walk.h"

namespace hv::runtime {

// The tensor as a stream of blocks, each at most one slot, cut at whole elements.
struct BlockPlan {
  std::size_t total_bytes = 0;
  std::size_t block_bytes = 0;
  std::uint64_t blocks = 0;

  std::size_t begin(std::uint64_t block) const {
    return static_cast<std::size_t>(block) * block_bytes;
  }
  std::size_t size(std::uint64_t block) const {
    return std::min(block_bytes, total_bytes - begin(block));
  }
};
BlockPlan plan_blocks(const CollectiveRequest& request, std::size_t slot_bytes);

class Allreduce : public RingCollective {
 protected:
  Allreduce(CollectiveSetup setup, int ring, const BlockPlan& plan);

  // Copies bytes [from, from + bytes) of the input to `to`, scaled by the request's prescale.
  void copy_in(SegmentWalk* walk, std::size_t from, std::size_t bytes, std::byte* to);
  // The same bytes of the result, from `from_slot` to the output.
  void copy_out(SegmentWalk* walk, std::size_t from, std::size_t bytes, const std::byte* from_slot);
  bool is_prescaled() const { return setup_.request.prescale != 1; }
  // Result memory that the caches would only suffer from: large and not being read anyway.
  bool is_streamed() const { return is_streamed_; }

  const BlockPlan plan_;
  const Finish finish_;
  const ReduceKernel reduce_;

 private:
  const bool is_streamed_;
};

std::unique_ptr<Collective> allreduce_alone(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_direct(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_shares(CollectiveSetup setup);

}  // namespace hv::runtime
