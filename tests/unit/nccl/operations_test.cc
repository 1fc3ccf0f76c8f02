// What NCCL is given, and what goes through the host's memory instead.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/operations.h"

#include <doctest/doctest.h>

#include "tests/unit/device/random_tensors.h"

using namespace hv::nccl;
using namespace hv::runtime;

namespace {

CollectiveRequest request_of(CollectiveKind kind, ElementType type,
                             Reduction reduction = Reduction::kSum) {
  CollectiveRequest request;
  request.kind = kind;
  request.type = type;
  request.reduction = reduction;
  return request;
}

GpuFacts facts_of(int version, int capability) {
  GpuFacts facts;
  facts.version = version;
  facts.capability = capability;
  return facts;
}

constexpr ElementType kFloat8s[] = {ElementType::kFloat8E4M3, ElementType::kFloat8E5M2};

}  // namespace

TEST_CASE("8-bit floats are reduced from NCCL 2.24 on, if every member's GPU is of 9.0 or newer") {
  CHECK(can_reduce_float8({facts_of(22400, 90)}));
  CHECK(can_reduce_float8({facts_of(22803, 90), facts_of(22803, 100)}));
  CHECK_FALSE(can_reduce_float8({facts_of(22304, 90)}));
  CHECK_FALSE(can_reduce_float8({facts_of(22803, 90), facts_of(22803, 89)}));
}

TEST_CASE("every type is moved by NCCL, whatever it can reduce") {
  for (const ElementType type : element_types())
    for (const CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kBroadcast, CollectiveKind::kAlltoall})
      CHECK(supports_operation(request_of(kind, type), false));
}

TEST_CASE("8-bit floats are reduced by NCCL where it can, and only unscaled") {
  for (const CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kReducescatter})
    for (const ElementType type : kFloat8s)
      for (const Reduction reduction :
           {Reduction::kSum, Reduction::kMin, Reduction::kMax, Reduction::kProduct}) {
        CollectiveRequest request = request_of(kind, type, reduction);
        CHECK(supports_operation(request, true));
        CHECK_FALSE(supports_operation(request, false));
        request.divisor = 2;
        CHECK_FALSE(supports_operation(request, true));
        request.divisor = 1;
        request.prescale = 0.5;
        CHECK_FALSE(supports_operation(request, true));
      }
}

TEST_CASE("other floats are reduced and averaged by every NCCL") {
  CollectiveRequest request = request_of(CollectiveKind::kAllreduce, ElementType::kBfloat16);
  CHECK(supports_operation(request, false));
  request.divisor = 3;
  CHECK(supports_operation(request, false));
  request.compression = Compression::kFloat16;
  CHECK(supports_operation(request, false));
  request.reduction = Reduction::kMax;
  CHECK_FALSE(supports_operation(request, false));
}

TEST_CASE("of floats that are no sums, wide ones are scaled") {
  for (const Reduction reduction : {Reduction::kMin, Reduction::kProduct}) {
    CollectiveRequest wide =
        request_of(CollectiveKind::kAllreduce, ElementType::kFloat32, reduction);
    CollectiveRequest narrow =
        request_of(CollectiveKind::kAllreduce, ElementType::kFloat16, reduction);
    CHECK(supports_operation(narrow, false));
    wide.postscale = narrow.postscale = 0.5;
    CHECK(supports_operation(wide, false));
    CHECK_FALSE(supports_operation(narrow, false));
  }
}

TEST_CASE("integers that NCCL reduces are averaged and scaled, too") {
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kUint8, ElementType::kInt32, ElementType::kInt64}) {
    CollectiveRequest request = request_of(CollectiveKind::kAllreduce, type);
    request.divisor = 3;
    CHECK(supports_operation(request, false));
    request.postscale = 0.5;
    CHECK(supports_operation(request, false));
  }
  CHECK_FALSE(
      supports_operation(request_of(CollectiveKind::kAllreduce, ElementType::kInt16), false));
  CHECK_FALSE(
      supports_operation(request_of(CollectiveKind::kAllreduce, ElementType::kBool), false));
}
