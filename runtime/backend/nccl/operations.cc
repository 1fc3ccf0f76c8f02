// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/operations.h"

#include <algorithm>
#include <utility>

#include "runtime/backend/nccl/nccl_library.h"
#include "runtime/backend/nccl/nccl_types.h"
#include "runtime/backend/nccl/reductions.h"
#include "runtime/backend/nccl/row_operations.h"

namespace hv::nccl {

using runtime::CollectiveKind;
using runtime::CollectiveRequest;

namespace {

constexpr int kFloat8Capability = 90;  // ten times that of the oldest GPUs on which NCCL has it

// Only a floating sum goes as another type. Narrow floats are scaled in sums only: NCCL rounds what
// comes between the factors, and what is too large there may not be so at the end. 8-bit ones are
// not even there: NCCL takes the factor in the tensor's type, in which a third is off by 3 percent.
bool can_scale(const CollectiveRequest& request) {
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  const bool compresses = request.compression != runtime::Compression::kNone;
  if (runtime::is_float8(request.type)) return !scales && !compresses;
  if (request.reduction == runtime::Reduction::kSum && runtime::is_floating(request.type))
    return true;
  return !compresses && !(scales && runtime::is_narrow_float(request.type));
}

bool supports_reduction(const CollectiveRequest& request, bool reduces_float8) {
  if (runtime::is_float8(request.type) && !reduces_float8) return false;
  return type_of(request.type) && reduction_of(request.reduction) && can_scale(request) &&
         !request.deterministic;
}

}  // namespace

bool can_reduce_float8(const std::vector<runtime::GpuFacts>& facts) {
  return std::all_of(facts.begin(), facts.end(), [](const runtime::GpuFacts& one) {
    return one.version >= kFloat8From && one.capability >= kFloat8Capability;
  });
}

bool supports_operation(const CollectiveRequest& request, bool reduces_float8) {
  switch (request.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kReducescatter:
      return supports_reduction(request, reduces_float8);
    case CollectiveKind::kAllgather:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAllocate:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<runtime::Collective> start_operation(std::shared_ptr<Lane> lane,
                                                     CollectiveRequest request,
                                                     runtime::Backend& host) {
  switch (request.kind) {
    case CollectiveKind::kAllreduce:
      return std::make_unique<Allreduce>(std::move(lane), std::move(request));
    case CollectiveKind::kReducescatter:
      return std::make_unique<Reducescatter>(std::move(lane), std::move(request));
    case CollectiveKind::kAllgather:
      return std::make_unique<Allgather>(std::move(lane), std::move(request));
    case CollectiveKind::kBroadcast:
      return std::make_unique<Broadcast>(std::move(lane), std::move(request));
    case CollectiveKind::kAlltoall:
      return std::make_unique<Alltoall>(std::move(lane), std::move(request), host);
    case CollectiveKind::kAllocate:
      return std::make_unique<Allocation>(std::move(lane), std::move(request));
    default:
      return nullptr;
  }
}

Status Allocation::begin_window(bool* has_begun) {
  if (!lane().has_windows()) return Status::success();
  *has_begun = true;
  return lane().communicator().begin_window(request().segments.front().output_bytes, &memory_);
}

Status Allocation::launch() {
  if (memory_ != nullptr) request().give_memory(std::move(memory_));
  return Status::success();
}

}  // namespace hv::nccl
