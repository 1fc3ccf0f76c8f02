// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/allreduce/allreduce.h"

namespace hv::runtime {
namespace {

bool is_in_place(const CollectiveRequest& request) {
  for (const Segment& segment : request.segments)
    if (segment.input == segment.output) return true;
  return false;
}

}  // namespace

BlockPlan plan_blocks(const CollectiveRequest& request, std::size_t slot_bytes) {
  const std::size_t element = element_size(wire_type(request.type, request.compression));
  BlockPlan plan;
  plan.total_bytes = total_elements(request.segments) * element;
  plan.block_bytes = slot_bytes / element * element;
  plan.blocks = (plan.total_bytes + plan.block_bytes - 1) / plan.block_bytes;
  return plan;
}

Allreduce::Allreduce(CollectiveSetup setup, int ring, const BlockPlan& plan)
    : RingCollective(std::move(setup), ring, plan.blocks),
      plan_(plan),
      wire_type_(wire_type(setup_.request.type, setup_.request.compression)),
      finish_(finish_of(setup_.request)),
      reduce_(setup_.kernels.reduce_for(wire_type_, setup_.request.reduction)),
      is_streamed_(plan.total_bytes >= kStreamReducedFromBytes && !is_in_place(setup_.request)) {}

void Allreduce::copy_in(SegmentWalk* walk, std::size_t from, std::size_t bytes, std::byte* to) {
  const int type = static_cast<int>(setup_.request.type);
  const ScaleKernel scale =
      is_compressed() ? setup_.kernels.pack[type][static_cast<int>(setup_.request.compression)]
                      : setup_.kernels.scale[type];
  const std::size_t ratio = element_bytes() / wire_bytes();
  count_copied(bytes);
  walk->visit(from * ratio, bytes * ratio,
              [&](const std::byte* input, std::byte*, std::size_t size) {
                if (is_own_input()) {
                  setup_.kernels.copy(to, input, size);
                } else {
                  scale(to, input, size / element_bytes(), setup_.request.prescale);
                }
                to += size / ratio;
              });
}

void Allreduce::copy_out(SegmentWalk* walk, std::size_t from, std::size_t bytes,
                         const std::byte* from_slot) {
  const UnpackKernel unpack = setup_.kernels.unpack[static_cast<int>(setup_.request.type)]
                                                   [static_cast<int>(setup_.request.compression)];
  const std::size_t ratio = element_bytes() / wire_bytes();
  walk->visit(from * ratio, bytes * ratio,
              [&](const std::byte*, std::byte* output, std::size_t size) {
                if (is_compressed()) {
                  unpack(output, from_slot, size / element_bytes());
                } else if (is_streamed()) {
                  setup_.kernels.stream_copy(output, from_slot, size);
                } else {
                  setup_.kernels.copy(output, from_slot, size);
                }
                from_slot += size / ratio;
              });
}

}  // namespace hv::runtime
