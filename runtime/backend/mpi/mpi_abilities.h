// What an MPI carries out. Pure; libhvrun says so in tables, where no MPI need be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>

#include "runtime/collective/collective.h"

namespace hv::runtime {

// One call of MPI's, or messages; nothing is packed or moved aside.
inline bool moves_by_addresses(const CollectiveRequest& request) {
  if (request.segments.size() != 1) return false;
  if (request.kind != CollectiveKind::kAllgather)
    return request.kind == CollectiveKind::kBroadcast || request.kind == CollectiveKind::kAlltoall;
  std::int64_t elements = 0;
  for (const std::int64_t count : request.counts_by_rank) elements += count;
  return elements * static_cast<std::int64_t>(element_size(request.type)) <= INT_MAX;
}

// Not Adasum, nor sparse tensors, nor what must have the same bits in every run: MPI folds in an
// order of its own. Of what is out of the host's reach an MPI that is aware of CUDA moves single
// tensors; sums it would take to the host itself, and where they do not block, not even that.
inline bool mpi_carries(const CollectiveRequest& request, bool is_cuda_aware) {
  const bool is_known = request.kind == CollectiveKind::kBarrier ||
                        request.kind == CollectiveKind::kBroadcast ||
                        request.kind == CollectiveKind::kAllgather ||
                        request.kind == CollectiveKind::kAlltoall || reduces(request.kind);
  if (!is_known || request.memory != MemoryKind::kHost) return false;
  if (request.is_out_of_reach) return is_cuda_aware && moves_by_addresses(request);
  if (!reduces(request.kind)) return true;
  const bool is_wide =
      request.type == ElementType::kFloat32 || request.type == ElementType::kFloat64;
  const bool compresses = request.compression != Compression::kNone;
  if (compresses && (request.kind != CollectiveKind::kAllreduce || !is_wide)) return false;
  if (request.reduction == Reduction::kAdasum) return false;
  if (request.deterministic && is_floating(request.type)) return false;
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  return request.type != ElementType::kBool || !scales;
}

}  // namespace hv::runtime
