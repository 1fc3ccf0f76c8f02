// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/packing.h"

namespace hv::nccl {

using runtime::kHostDevice;
using runtime::Segment;

namespace {

constexpr std::size_t kAlignment = 16;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Packing plan_packing(const runtime::CollectiveRequest& request, bool scales_in, bool scales_out) {
  Packing plan;
  const runtime::ElementType wire = runtime::wire_type(request.type, request.compression);
  const std::size_t width = runtime::element_size(wire);
  const bool is_as_it_is = wire == request.type;
  bool is_input_whole = is_as_it_is && !scales_in, is_output_whole = is_as_it_is && !scales_out;
  const Segment* first = nullptr;
  for (const Segment& segment : request.segments) {
    if (segment.count == 0) continue;
    if (first == nullptr) first = &segment;
    const std::size_t offset = aligned(plan.bytes);
    const bool is_here = segment.device != kHostDevice;
    const bool lies_close = is_here && offset == plan.bytes;
    is_input_whole &= lies_close && segment.input == first->input + offset;
    is_output_whole &=
        lies_close && segment.output != nullptr && segment.output == first->output + offset;
    plan.moves_in.push_back({offset, segment.count, is_here ? segment.input : nullptr, nullptr});
    if (is_here && segment.output != nullptr)
      plan.moves_out.push_back({offset, segment.count, nullptr, segment.output});
    plan.bytes = offset + static_cast<std::size_t>(segment.count) * width;
  }
  if (first == nullptr) return plan;
  plan.count = static_cast<std::int64_t>(plan.bytes / width);
  if (is_input_whole) plan.input = first->input;
  if (is_output_whole) plan.output = first->output;
  if (is_input_whole) plan.moves_in.clear();
  if (is_output_whole) plan.moves_out.clear();
  return plan;
}

}  // namespace hv::nccl
