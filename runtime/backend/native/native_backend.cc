// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/native/native_backend.h"

#include "runtime/collective/registry.h"
#include "runtime/device/kernels.h"
#include "src/base/check.h"

namespace hv::runtime {

bool NativeBackend::supports(const CollectiveRequest& request) const {
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  if (request.divisor < 1) return false;
  return request.type != ElementType::kBool || !scales;
}

std::unique_ptr<Collective> NativeBackend::start(CollectiveRequest request) {
  HV_CHECK(supports(request), "a backend is asked before it is given work");
  return start_collective({plane_, rings_, best_kernels(), std::move(request)});
}

}  // namespace hv::runtime
