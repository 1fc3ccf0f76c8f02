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
};

enum class Reduction : std::uint8_t {
  kSum = 1,
  kAverage = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
  kAdasum = 6,  // of whole tensors: no fold of elements
};

constexpr bool is_element_type(int number) { return number >= 1 && number <= 10; }
constexpr bool is_reduction(int number) { return number >= 1 && number <= 6; }
constexpr bool is_floating(ElementType type) {
  return type >= ElementType::kFloat16 && type <= ElementType::kFloat64;
}
constexpr bool is_half_precision(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

constexpr std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
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
