// The names of element types and reductions, as messages show them.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/element_type.h"

namespace hv::runtime {

const char* element_type_name(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kBool:
      return "bool";
    case ElementType::kFloat8E4M3:
      return "float8_e4m3";
    case ElementType::kFloat8E5M2:
      return "float8_e5m2";
  }
  return "unknown type";
}

const char* reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kAverage:
      return "average";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kProduct:
      return "product";
    case Reduction::kAdasum:
      return "adasum";
  }
  return "unknown reduction";
}

}  // namespace hv::runtime
