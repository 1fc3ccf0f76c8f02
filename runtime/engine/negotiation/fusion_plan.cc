// One open group per kind of tensor; a tensor joins it or, where it does not fit, opens the next.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/fusion_plan.h"

#include <algorithm>

namespace hv::runtime {
namespace {

struct OpenGroup {
  const TensorDescription* like;
  std::size_t index;
  std::int64_t bytes;
};

// The dot products of Adasum are those of one tensor. What lies in memory from kAllocate is to stay
// there.
bool can_fuse(const TensorDescription& tensor) {
  return reduces(tensor.kind) && tensor.reduction != Reduction::kAdasum && tensor.window == 0;
}

}  // namespace

bool can_share(const TensorDescription& a, const TensorDescription& b) {
  return can_fuse(a) && can_fuse(b) && b.kind == a.kind && a.type == b.type &&
         a.reduction == b.reduction && a.divides_by_present == b.divides_by_present &&
         a.compression == b.compression && a.memory == b.memory && a.prescale == b.prescale &&
         a.postscale == b.postscale;
}

std::vector<std::vector<std::size_t>> plan_fusion(
    const std::vector<const TensorDescription*>& tensors, std::int64_t threshold_bytes) {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<OpenGroup> open;  // few: one per type, reduction and scaling in use
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorDescription& tensor = *tensors[i];
    const std::int64_t bytes = tensor.bytes();
    if (!can_fuse(tensor) || bytes > threshold_bytes) {
      groups.push_back({i});
      continue;
    }
    const auto group = std::find_if(open.begin(), open.end(), [&](const OpenGroup& candidate) {
      return can_share(*candidate.like, tensor);
    });
    if (group == open.end()) {
      open.push_back({&tensor, groups.size(), bytes});
      groups.push_back({i});
    } else if (group->bytes + bytes <= threshold_bytes && threshold_bytes > 0) {
      group->bytes += bytes;
      groups[group->index].push_back(i);
    } else {
      *group = {&tensor, groups.size(), bytes};
      groups.push_back({i});
    }
  }
  return groups;
}

}  // namespace hv::runtime
