// NCCL's numbers for the runtime's types and reductions, and factors as it reads them.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_types.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/unit/device/random_tensors.h"

using namespace hv::nccl;
using hv::runtime::ElementType;
using hv::runtime::Reduction;

TEST_CASE("NCCL computes with all types but int16 and bool, and has no Adasum") {
  for (const ElementType type : hv::runtime::element_types()) {
    const bool is_lacking = type == ElementType::kInt16 || type == ElementType::kBool;
    CHECK(type_of(type).has_value() == !is_lacking);
  }
  CHECK(type_of(ElementType::kBfloat16) == kBfloat16);
  CHECK(type_of(ElementType::kFloat8E4M3) == kFloat8E4m3);
  CHECK(type_of(ElementType::kFloat8E5M2) == kFloat8E5m2);
  CHECK(reduction_of(Reduction::kMax) == kMax);
  CHECK_FALSE(reduction_of(Reduction::kAdasum));
  CHECK_FALSE(reduction_of(Reduction::kAverage));
}

TEST_CASE("a factor is of the elements' type") {
  const auto bits = [](ElementType type, auto like) {
    std::memcpy(&like, scalar_of(type, -0.125).bytes, sizeof like);
    return like;
  };
  CHECK(bits(ElementType::kFloat64, 0.0) == -0.125);
  CHECK(bits(ElementType::kFloat32, 0.0F) == -0.125F);
  CHECK(bits(ElementType::kFloat16, std::uint16_t{0}) == 0xb000);
  CHECK(bits(ElementType::kBfloat16, std::uint16_t{0}) == 0xbe00);
}
