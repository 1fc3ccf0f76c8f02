// Sizes and words of a tensor's description.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tensor_description.h"

#include <string_view>

#include "src/base/text.h"

namespace hv::runtime {

std::string tensor_words(const std::string& name) {
  const std::size_t prefix = std::string_view(kOwnPrefix).size();
  return name.starts_with(kOwnPrefix) ? printable(std::string_view(name).substr(prefix))
                                      : "tensor '" + printable(name) + "'";
}

std::int64_t TensorDescription::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent != kVaries) count *= extent;
  }
  return kind == CollectiveKind::kBarrier || is_set_change(kind) ? 0 : count;
}

std::int64_t TensorDescription::bytes() const {
  return elements() * static_cast<std::int64_t>(element_size(type));
}

bool is_countable(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (factor > kMostElements / elements) return false;
    elements *= factor;
  }
  return true;
}

bool TensorDescription::is_valid() const {
  const auto number = static_cast<int>(kind);
  const auto reduction_number = static_cast<int>(reduction);
  const bool is_kind = (number >= 1 && number <= 11) || (number >= 32 && number <= 35);
  if (!is_kind || !is_reduction(reduction_number)) return false;
  if (!is_element_type(static_cast<int>(type)) || root < 0) return false;
  if (!is_compression(static_cast<int>(compression)) || !is_index_type(index_type)) return false;
  if (memory != MemoryKind::kHost && memory != MemoryKind::kCuda) return false;
  if (window_offset < 0 || (window == 0 && window_offset != 0)) return false;
  if (window != 0 && (kind != CollectiveKind::kAllreduce || memory == MemoryKind::kHost))
    return false;
  if (shape.size() > kMostDimensions || ranks.size() > kMostMembers) return false;
  if ((group == 0) != (group_size == 0) || group_size > kMostGrouped) return false;
  if (!ranks.empty() && kind != CollectiveKind::kAddSet) return false;
  const bool varies = has_own_extents(kind);
  if (varies && (shape.empty() || shape[0] != kVaries)) return false;
  for (std::size_t i = varies ? 1 : 0; i < shape.size(); ++i)
    if (shape[i] < 0) return false;
  return is_countable(shape);
}

bool is_index_type(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64;
}

namespace {

Status refuse(const std::string& words) { return {StatusCode::kUnsupported, words}; }

Status check_sparse(const TensorDescription& description) {
  if (description.reduction != Reduction::kSum && description.reduction != Reduction::kAverage)
    return refuse(std::string("sparse allreduce takes sum and average, not ") +
                  reduction_name(description.reduction) +
                  ": it adds no rows up, so it can compare none");
  if (description.reduction == Reduction::kAverage && !is_floating(description.type))
    return refuse(std::string("sparse allreduce averages floating-point values, not ") +
                  element_type_name(description.type) +
                  ": each row would be truncated by itself; sum them");
  if (description.compression != Compression::kNone)
    return refuse("sparse allreduce is not compressed; leave compression out");
  return Status::success();
}

Status check_compression(const TensorDescription& description) {
  if (description.kind != CollectiveKind::kAllreduce)
    return refuse(std::string("compression is for allreduce, not for ") +
                  collective_name(description.kind));
  if (description.type != ElementType::kFloat32 && description.type != ElementType::kFloat64)
    return refuse(std::string("compression is for float32 and float64, not for ") +
                  element_type_name(description.type));
  if (description.reduction == Reduction::kAdasum)
    return refuse("adasum is not compressed: its dot products need the values as they are");
  return Status::success();
}

}  // namespace

Status check_meaning(const TensorDescription& description) {
  const bool scales = description.prescale != 1 || description.postscale != 1;
  if (description.type == ElementType::kBool &&
      (description.reduction == Reduction::kAverage || scales))
    return refuse(
        "bool takes neither average nor scales; reduce it as uint8, or by sum, min or max");
  if (description.kind == CollectiveKind::kSparseAllreduce) return check_sparse(description);
  if (description.compression != Compression::kNone) {
    const Status status = check_compression(description);
    if (!status.ok()) return status;
  }
  if (description.reduction != Reduction::kAdasum) return Status::success();
  if (description.kind != CollectiveKind::kAllreduce)
    return refuse(std::string("adasum is a reduction of allreduce, not of ") +
                  collective_name(description.kind));
  if (!is_floating(description.type))
    return refuse(std::string("adasum combines floating-point tensors, not ") +
                  element_type_name(description.type) + "; reduce it by sum or average");
  return Status::success();
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
    case CollectiveKind::kReducescatter:
      return "reducescatter";
    case CollectiveKind::kAlltoall:
      return "alltoall";
    case CollectiveKind::kJoin:
      return "join";
    case CollectiveKind::kSend:
      return "send";
    case CollectiveKind::kReceive:
      return "receive";
    case CollectiveKind::kSparseAllreduce:
      return "sparse allreduce";
    case CollectiveKind::kAllocate:
      return "allocation";
    case CollectiveKind::kAddSet:
      return "addition of a process set";
    case CollectiveKind::kRemoveSet:
      return "removal of a process set";
    case CollectiveKind::kSetMade:
    case CollectiveKind::kSetGone:
      return "change of process sets";
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
