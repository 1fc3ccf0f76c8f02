// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/operations.h"

#include <algorithm>

#include "runtime/backend/nccl/nccl_library.h"
#include "runtime/backend/nccl/nccl_types.h"
#include "runtime/backend/nccl/reductions.h"
#include "runtime/backend/nccl/row_operations.h"

namespace hv::nccl {

using runtime::CollectiveKind;
using runtime::CollectiveRequest;

namespace {

constexpr int kFloat8Capability = 90;  // ten times that of the oldest GPUs on which NCCL has it

// A reduction's factor is multiplied into its addends, so only a floating sum has one, and only
// that goes as another type. No 8-bit float's: NCCL takes the factor in the tensor's type, in which
// a third is off by 3 percent, and more.
bool supports_reduction(const CollectiveRequest& request, bool reduces_float8) {
  const bool is_float8 = runtime::is_float8(request.type);
  if (is_float8 && !reduces_float8) return false;
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  const bool is_scaled_sum = request.reduction == runtime::Reduction::kSum &&
                             runtime::is_floating(request.type) && !is_float8;
  const bool is_plain = !scales && request.compression == runtime::Compression::kNone;
  return type_of(request.type) && reduction_of(request.reduction) && (is_plain || is_scaled_sum) &&
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
    default:
      return nullptr;
  }
}

}  // namespace hv::nccl
