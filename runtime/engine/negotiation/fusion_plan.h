// Fusion: which of the tensors that are ready travel together, in one look-ahead pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/engine/tensor_description.h"

namespace hv::runtime {

// Two tensors can travel in one group: allreduces, or reducescatters, of one type, reduction,
// scaling and compression. None by Adasum: its dot products are those of one tensor.
bool can_share(const TensorDescription& a, const TensorDescription& b);

// Indices into tensors, grouped; groups stand in the order of their first member, members in
// theirs. Only what can share is fused, up to threshold_bytes a
// group; a tensor of another type in between breaks no run. threshold_bytes 0: nothing is fused.
// Pure.
std::vector<std::vector<std::size_t>> plan_fusion(
    const std::vector<const TensorDescription*>& tensors, std::int64_t threshold_bytes);

}  // namespace hv::runtime
