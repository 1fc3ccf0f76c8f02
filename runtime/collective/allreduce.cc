// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/allreduce.h"

#include <bit>

namespace hv::runtime {
namespace {

// From here on results go past the caches: nothing of them would still be there when the caller
// looks.
constexpr std::size_t kStreamFromBytes = 16 << 20;

// Dividing by a power of two is multiplying by its inverse, bit for bit, and cheaper; 16-bit floats
// are multiplied in float32, where the inverse's error is far below their rounding.
Finish finish_of(const CollectiveRequest& request) {
  Finish finish{request.postscale, static_cast<double>(request.divisor)};
  const bool is_half =
      request.type == ElementType::kFloat16 || request.type == ElementType::kBfloat16;
  const bool is_float =
      is_half || request.type == ElementType::kFloat32 || request.type == ElementType::kFloat64;
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(request.divisor));
  if (is_half || (is_float && is_power)) return {finish.factor / finish.divisor, 1};
  return finish;
}

bool is_in_place(const CollectiveRequest& request) {
  for (const Segment& segment : request.segments)
    if (segment.input == segment.output) return true;
  return false;
}

}  // namespace

BlockPlan plan_blocks(const CollectiveRequest& request, std::size_t slot_bytes) {
  const std::size_t element = element_size(request.type);
  BlockPlan plan;
  plan.total_bytes = total_elements(request.segments) * element;
  plan.block_bytes = slot_bytes / element * element;
  plan.blocks = (plan.total_bytes + plan.block_bytes - 1) / plan.block_bytes;
  return plan;
}

Allreduce::Allreduce(CollectiveSetup setup, int ring, const BlockPlan& plan)
    : RingCollective(std::move(setup), ring, plan.blocks),
      plan_(plan),
      finish_(finish_of(setup_.request)),
      reduce_(setup_.kernels.reduce_for(setup_.request.type, setup_.request.reduction)),
      is_streamed_(plan.total_bytes >= kStreamFromBytes && !is_in_place(setup_.request)) {}

void Allreduce::copy_in(SegmentWalk* walk, std::size_t from, std::size_t bytes, std::byte* to) {
  const ScaleKernel scale = setup_.kernels.scale[static_cast<int>(setup_.request.type)];
  walk->visit(from, bytes, [&](const std::byte* input, std::byte*, std::size_t size) {
    if (is_prescaled()) {
      scale(to, input, size / element_bytes(), setup_.request.prescale);
    } else {
      setup_.kernels.copy(to, input, size);
    }
    to += size;
  });
}

void Allreduce::copy_out(SegmentWalk* walk, std::size_t from, std::size_t bytes,
                         const std::byte* from_slot) {
  walk->visit(from, bytes, [&](const std::byte*, std::byte* output, std::size_t size) {
    if (is_streamed()) {
      setup_.kernels.stream_copy(output, from_slot, size);
    } else {
      setup_.kernels.copy(output, from_slot, size);
    }
    from_slot += size;
  });
}

}  // namespace hv::runtime
