// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "runtime/backend/native/native_backend.h"
#include "runtime/backend/nccl/operations.h"
#include "tests/ranks/collective_checks.h"

using namespace hv;
using namespace hv::runtime;

// carrier_order() leaves out what stands behind native.
TEST_CASE("native carries out whatever NCCL does") {
  int carried = 0;
  for (const ElementType type : all_types()) {
    for (const Reduction reduction : all_reductions()) {
      for (const CollectiveKind kind :
           {CollectiveKind::kAllreduce, CollectiveKind::kReducescatter}) {
        for (const double scale : {1.0, 2.0}) {
          CollectiveRequest request = allreduce_of(type, reduction);
          request.kind = kind;
          request.postscale = scale;
          CAPTURE(element_type_name(type));
          if (!nccl::supports_operation(request, true)) continue;
          ++carried;
          CHECK(NativeBackend::carries(request));
        }
      }
    }
  }
  CHECK(carried > 50);
}
