// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/native/native_backend.h"

#include "runtime/collective/registry.h"
#include "src/base/check.h"

namespace hv::runtime {

bool NativeBackend::carries(const CollectiveRequest& request) {
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  const bool is_in_reach = request.memory == MemoryKind::kHost && !request.is_out_of_reach;
  if (request.divisor < 1 || !is_in_reach) return false;
  const bool compresses = request.compression != Compression::kNone;
  const bool is_wide =
      request.type == ElementType::kFloat32 || request.type == ElementType::kFloat64;
  if (compresses && (request.kind != CollectiveKind::kAllreduce || !is_wide)) return false;
  if (request.reduction == Reduction::kAdasum) {
    return request.kind == CollectiveKind::kAllreduce && is_floating(request.type) &&
           request.divisor == 1 && request.segments.size() == 1 && !compresses;
  }
  return request.type != ElementType::kBool || !scales;
}

std::unique_ptr<Collective> NativeBackend::start(CollectiveRequest request) {
  HV_CHECK(supports(request), "a backend is asked before it is given work");
  return start_collective(
      {plane_, rings_, *settings_.kernels, std::move(request), &settings_.wishes});
}

}  // namespace hv::runtime
