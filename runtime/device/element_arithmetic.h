// Elements, and the arithmetic on them that the host's kernels and the GPUs' must do alike.
// SPDX-License-Identifier: Apache-2.0
//
// Everything is in an anonymous namespace, for the reason in kernel_operations.h.
#pragma once

#include <cstdint>

#include "runtime/device/float8.h"
#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

// Tags for the types that are not C++ arithmetic types.
struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t value;
};
struct E4m3 {
  std::uint8_t bits;
};
struct E5m2 {
  std::uint8_t bits;
};

template <typename T>
constexpr bool kIsInteger = static_cast<T>(0.5) == static_cast<T>(0);

// Towards zero; what no int64 holds becomes the nearest that one does, a NaN 0.
HV_ALSO_ON_GPU inline std::int64_t saturated(double value) {
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return value == value ? static_cast<std::int64_t>(value) : 0;
}

// Every NaN becomes the same one: which payload and sign survive an operation depends on the order
// of its operands, and so on where an element lies and what it was fused with.
template <typename A>
constexpr A kQuietNan = static_cast<A>(__builtin_nan(""));
template <typename A>
HV_ALSO_ON_GPU A canonical(A value) {
  if constexpr (kIsInteger<A>) {
    return value;
  } else {
    return value == value ? value : kQuietNan<A>;
  }
}

}  // namespace
}  // namespace hv::runtime
