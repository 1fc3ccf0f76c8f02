// Sizes and words of a tensor's description.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tensor_description.h"

#include "src/base/text.h"

namespace hv::runtime {

std::int64_t TensorDescription::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent != kVaries) count *= extent;
  }
  return kind == CollectiveKind::kBarrier ? 0 : count;
}

std::int64_t TensorDescription::bytes() const {
  return elements() * static_cast<std::int64_t>(element_size(type));
}

bool TensorDescription::is_valid() const {
  const auto number = static_cast<int>(kind);
  const auto reduction_number = static_cast<int>(reduction);
  if (number < 1 || number > 4 || reduction_number < 1 || reduction_number > 5) return false;
  if (!is_element_type(static_cast<int>(type)) || root < 0) return false;
  if (shape.size() > kMostDimensions) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool may_vary = i == 0 && kind == CollectiveKind::kAllgather;
    if (shape[i] < (may_vary ? kVaries : 0)) return false;
  }
  return true;
}

const char* collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return "allreduce";
    case CollectiveKind::kAllgather:
      return "allgather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown operation";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> extents;
  for (const std::int64_t extent : shape) {
    extents.push_back(extent == kVaries ? "*" : std::to_string(extent));
  }
  return "[" + join(extents, ",") + "]";
}

}  // namespace hv::runtime
