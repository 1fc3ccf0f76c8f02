// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/packing.h"

namespace hv::nccl {

using runtime::kHostDevice;
using runtime::Segment;

Packing plan_packing(const runtime::CollectiveRequest& request) {
  Packing plan;
  const std::size_t width = runtime::element_size(request.type);
  bool is_input_whole = true, is_output_whole = true;
  const Segment* first = nullptr;
  for (const Segment& segment : request.segments) {
    if (segment.count == 0) continue;
    if (first == nullptr) first = &segment;
    const bool is_here = segment.device != kHostDevice;
    const std::size_t bytes = static_cast<std::size_t>(segment.count) * width;
    is_input_whole &= is_here && segment.input == first->input + plan.bytes;
    is_output_whole &=
        is_here && segment.output != nullptr && segment.output == first->output + plan.bytes;
    plan.moves_in.push_back({plan.bytes, bytes, is_here ? segment.input : nullptr, nullptr});
    if (is_here && segment.output != nullptr)
      plan.moves_out.push_back({plan.bytes, bytes, nullptr, segment.output});
    plan.bytes += bytes;
    plan.count += segment.count;
  }
  if (first == nullptr) return plan;
  if (is_input_whole) plan.input = first->input;
  if (is_output_whole) plan.output = first->output;
  if (is_input_whole) plan.moves_in.clear();
  if (is_output_whole) plan.moves_out.clear();
  return plan;
}

}  // namespace hv::nccl
