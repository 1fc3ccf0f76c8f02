// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/operations.h"

#include "runtime/backend/nccl/nccl_types.h"
#include "runtime/backend/nccl/reductions.h"
#include "runtime/backend/nccl/row_operations.h"

namespace hv::nccl {

using runtime::CollectiveKind;
using runtime::CollectiveRequest;

namespace {

// A reduction's factor is multiplied into its addends, so only a floating sum has one, and only
// that goes as another type.
bool supports_reduction(const CollectiveRequest& request) {
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  const bool is_scaled_sum =
      request.reduction == runtime::Reduction::kSum && runtime::is_floating(request.type);
  const bool is_plain = !scales && request.compression == runtime::Compression::kNone;
  return type_of(request.type) && reduction_of(request.reduction) && (is_plain || is_scaled_sum) &&
         !request.deterministic;
}

}  // namespace

bool supports_operation(const CollectiveRequest& request) {
  switch (request.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kReducescatter:
      return supports_reduction(request);
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
