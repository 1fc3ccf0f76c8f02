// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_types.h"

#include <cstring>

#include "runtime/device/half.h"

namespace hv::nccl {

using runtime::ElementType;
using runtime::Reduction;

std::optional<int> type_of(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return kUint8;
    case ElementType::kInt8:
      return kInt8;
    case ElementType::kInt32:
      return kInt32;
    case ElementType::kInt64:
      return kInt64;
    case ElementType::kFloat16:
      return kFloat16;
    case ElementType::kBfloat16:
      return kBfloat16;
    case ElementType::kFloat32:
      return kFloat32;
    case ElementType::kFloat64:
      return kFloat64;
    case ElementType::kFloat8E4M3:
      return kFloat8E4m3;
    case ElementType::kFloat8E5M2:
      return kFloat8E5m2;
    case ElementType::kInt16:
    case ElementType::kBool:
      break;
  }
  return std::nullopt;
}

std::optional<int> reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return kSum;
    case Reduction::kMin:
      return kMin;
    case Reduction::kMax:
      return kMax;
    case Reduction::kProduct:
      return kProduct;
    case Reduction::kAverage:  // a sum and a divisor by now
    case Reduction::kAdasum:
      break;
  }
  return std::nullopt;
}

Scalar scalar_of(ElementType type, double value) {
  Scalar scalar;
  const auto put = [&](auto number) { std::memcpy(scalar.bytes, &number, sizeof number); };
  const auto narrow = static_cast<float>(value);
  if (type == ElementType::kFloat64) put(value);
  if (type == ElementType::kFloat32) put(narrow);
  if (type == ElementType::kFloat16) put(runtime::half_from_float(narrow));
  if (type == ElementType::kBfloat16) put(runtime::bfloat_from_float(narrow));
  return scalar;
}

}  // namespace hv::nccl
