// What the allreduce algorithms share: block sizes, the finish, copying in and out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/collective/ring_collective.h"
#include "runtime/collective/segment_walk.h"

namespace hv::runtime {

// The tensor as a stream of blocks, each at most one slot, cut at whole elements. Bytes are those
// that move: of the wire type.
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

  // Copies bytes [from, from + bytes) of what moves to `to`: the input, scaled by the request's
  // prescale, in the wire type.
  void copy_in(SegmentWalk* walk, std::size_t from, std::size_t bytes, std::byte* to);
  // The same bytes of the result, from `from_slot` to the output.
  void copy_out(SegmentWalk* walk, std::size_t from, std::size_t bytes, const std::byte* from_slot);
  bool is_prescaled() const { return setup_.request.prescale != 1; }
  bool is_compressed() const { return wire_type_ != setup_.request.type; }
  // This rank's part is what it gave: neither scaled nor rounded on its way.
  bool is_own_input() const { return !is_prescaled() && !is_compressed(); }
  std::size_t wire_bytes() const { return element_size(wire_type_); }  // of an element
  // Result memory that the caches would only suffer from: large and not being read anyway.
  bool is_streamed() const { return is_streamed_; }

  const BlockPlan plan_;
  const ElementType wire_type_;
  const Finish finish_;
  const ReduceKernel reduce_;

 private:
  const bool is_streamed_;
};

std::unique_ptr<Collective> allreduce_adasum(CollectiveSetup setup);
// Of those on one host, the one for this number of ranks.
std::unique_ptr<Collective> allreduce_through_slots(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_in_place(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_alone(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_direct(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_shares(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_torus(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_hierarchical(CollectiveSetup setup);
std::unique_ptr<Collective> allreduce_sparse(CollectiveSetup setup);

}  // namespace hv::runtime
