// The element types and reductions that a tensor can have; numbers equal those in hvrun.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace hv::runtime {

enum class ElementType : std::uint8_t {
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kBfloat16 = 7,
  kFloat32 = 8,
  kFloat64 = 9,
  kBool = 10,
  kFloat8E4M3 = 14,  // no infinity; the largest is 448
  kFloat8E5M2 = 15,
};
// What is looked up by type has so many rows.
constexpr int kTypeNumbers = 16;

enum class Reduction : std::uint8_t {
  kSum = 1,
  kAverage = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
  kAdasum = 6,  // of whole tensors: no fold of elements
};

constexpr bool is_element_type(int number) {
  return (number >= 1 && number <= 10) || number == 14 || number == 15;
}
constexpr bool is_reduction(int number) { return number >= 1 && number <= 6; }
constexpr bool is_float8(ElementType type) {
  return type == ElementType::kFloat8E4M3 || type == ElementType::kFloat8E5M2;
}
// Of 16 or 8 bits: computed with in float32, and rounded then.
constexpr bool is_narrow_float(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16 || is_float8(type);
}
constexpr bool is_floating(ElementType type) {
  return is_narrow_float(type) || type == ElementType::kFloat32 || type == ElementType::kFloat64;
}
constexpr bool is_integer(ElementType type) {
  return !is_floating(type) && type != ElementType::kBool;
}

constexpr std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return 1;
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
    case ElementType::kFloat64:
      return 8;
  }
  return 0;
}

// What a tensor is made smaller to on its way; numbers equal those in hvrun.h.
enum class Compression : std::uint8_t { kNone = 0, kFloat16 = 1, kBfloat16 = 2 };
constexpr bool is_compression(int number) { return number >= 0 && number <= 2; }
// The type that moves.
constexpr ElementType wire_type(ElementType type, Compression compression) {
  switch (compression) {
    case Compression::kFloat16:
      return ElementType::kFloat16;
    case Compression::kBfloat16:
      return ElementType::kBfloat16;
    case Compression::kNone:
      break;
  }
  return type;
}

// "float32", as in messages.
const char* element_type_name(ElementType type);
const char* reduction_name(Reduction reduction);

}  // namespace hv::runtime
