// What the kernels do to one element, one tile or one vector: types, operations, loading,
// finishing, storing.
// SPDX-License-Identifier: Apache-2.0
//
// Compiled once per instruction set, together with kernel_loops.h: everything is in an anonymous
// namespace and uses no standard templates, so that the copy built for newer processors can never
// be linked into the portable path. The including file defines widen_half and narrow_half (tiles of
// float16) and kVectorBytes (32 or 64) before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/device/element_arithmetic.h"
#include "runtime/device/kernels.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kTile = 512;  // elements

// T as stored, Accumulator as computed with. Integers add and multiply unsigned, so that they wrap.
template <typename T>
struct Traits {
  using Accumulator = T;
  static constexpr bool kConverts = false;
};
template <>
struct Traits<Half> {
  using Accumulator = float;
  static constexpr bool kConverts = true;
};
template <>
struct Traits<Bfloat> {
  using Accumulator = float;
  static constexpr bool kConverts = true;
};
template <>
struct Traits<E4m3> {
  using Accumulator = float;
  static constexpr bool kConverts = true;
};
template <>
struct Traits<E5m2> {
  using Accumulator = float;
  static constexpr bool kConverts = true;
};

template <typename T>
struct Wrapping {
  using Type = T;
};
template <>
struct Wrapping<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Wrapping<std::int64_t> {
  using Type = std::uint64_t;
};
template <>
struct Wrapping<std::int16_t> {
  using Type = std::uint32_t;  // uint16_t would be promoted to int, whose product may overflow
};

struct Sum {
  template <typename A>
  static A apply(A a, A b) {
    using W = typename Wrapping<A>::Type;
    return static_cast<A>(static_cast<W>(a) + static_cast<W>(b));
  }
  static Bool apply(Bool a, Bool b) {
    return {static_cast<std::uint8_t>((a.value | b.value) != 0)};
  }
};
struct Product {
  template <typename A>
  static A apply(A a, A b) {
    using W = typename Wrapping<A>::Type;
    return static_cast<A>(static_cast<W>(a) * static_cast<W>(b));
  }
  static Bool apply(Bool a, Bool b) {
    return {static_cast<std::uint8_t>((a.value != 0) & (b.value != 0))};
  }
};
// Whether a float's sign bit is set: tells the zeros apart.
inline bool is_negative(float value) {
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits < 0;
}
inline bool is_negative(double value) {
  std::int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits < 0;
}

// Of floats, IEEE 754's minimum and maximum: a NaN wins, and -0 is less than +0. Then the bits do
// not depend on which operand came first.
struct Min {
  template <typename A>
  static A apply(A a, A b) {
    if constexpr (kIsInteger<A>) {
      return b < a ? b : a;
    } else {
      return ((b < a) | ((b == a) & is_negative(b)) | (b != b)) ? b : a;
    }
  }
  static Bool apply(Bool a, Bool b) { return Product::apply(a, b); }
};
struct Max {
  template <typename A>
  static A apply(A a, A b) {
    if constexpr (kIsInteger<A>) {
      return a < b ? b : a;
    } else {
      return ((a < b) | ((b == a) & !is_negative(b)) | (b != b)) ? b : a;
    }
  }
  static Bool apply(Bool a, Bool b) { return Sum::apply(a, b); }
};

template <typename T>
void load_tile(typename Traits<T>::Accumulator* to, const T* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
}
template <>
void load_tile<Half>(float* to, const Half* from, std::size_t count) {
  widen_half(to, reinterpret_cast<const std::uint16_t*>(from), count);
}
template <>
void load_tile<Bfloat>(float* to, const Bfloat* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_from_bfloat(from[i].bits);
}
// By way of float16, for which there are instructions: that has e4m3's exponents less 8, and all
// of e5m2's. At most a tile.
template <>
void load_tile<E4m3>(float* to, const E4m3* from, std::size_t count) {
  alignas(64) std::uint16_t halves[kTile];
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t sign = from[i].bits & 0x80u, magnitude = from[i].bits & 0x7fu;
    const std::uint32_t half = magnitude == 0x7f ? 0x7e00u : magnitude << 7;
    halves[i] = static_cast<std::uint16_t>(sign << 8 | half);
  }
  widen_half(to, halves, count);
  for (std::size_t i = 0; i < count; ++i) to[i] *= 256;
}
template <>
void load_tile<E5m2>(float* to, const E5m2* from, std::size_t count) {
  alignas(64) std::uint16_t halves[kTile];
  for (std::size_t i = 0; i < count; ++i) halves[i] = static_cast<std::uint16_t>(from[i].bits << 8);
  widen_half(to, halves, count);
}

template <typename T>
void store_tile(T* to, const typename Traits<T>::Accumulator* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
}
template <>
void store_tile<Half>(Half* to, const float* from, std::size_t count) {
  narrow_half(reinterpret_cast<std::uint16_t*>(to), from, count);
}
template <>
void store_tile<Bfloat>(Bfloat* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i].bits = bfloat_from_float(from[i]);
}
// What overflows is a NaN only now, and loses its sign as other NaNs have.
template <>
void store_tile<E4m3>(E4m3* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t bits = e4m3_from_float(from[i]);
    to[i].bits = bits == 0xff ? 0x7f : bits;
  }
}
template <>
void store_tile<E5m2>(E5m2* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i].bits = e5m2_from_float(from[i]);
}

// value * factor / divisor in place, canonical.
template <typename A>
void finish_tile(A* tile, std::size_t count, const Finish& finish) {
  if constexpr (kIsInteger<A>) {
    if (finish.factor != 1) {
      for (std::size_t i = 0; i < count; ++i)
        tile[i] = static_cast<A>(saturated(static_cast<double>(tile[i]) * finish.factor));
    }
    const auto divisor = static_cast<std::int64_t>(finish.divisor);
    if (divisor != 1) {
      for (std::size_t i = 0; i < count; ++i)
        tile[i] = static_cast<A>(static_cast<std::int64_t>(tile[i]) / divisor);
    }
  } else {
    if (finish.factor != 1) {
      const A factor = static_cast<A>(finish.factor);
      for (std::size_t i = 0; i < count; ++i) tile[i] *= factor;
    }
    if (finish.divisor != 1) {
      const A divisor = static_cast<A>(finish.divisor);
      for (std::size_t i = 0; i < count; ++i) tile[i] /= divisor;
    }
    for (std::size_t i = 0; i < count; ++i) tile[i] = canonical(tile[i]);
  }
}
void finish_tile(Bool*, std::size_t, const Finish&) {}

// Vectors of the compiler: kVectorBytes of T, whatever the instruction set makes of them.
template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename V>
V load_vector(const void* from) {
  V vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Operation::apply, lane by lane. Vectors of integers wrap by themselves (the library is built with
// -fwrapv for them).
template <typename T>
Vector<T> apply_vector(Sum, Vector<T> a, Vector<T> b) {
  return a + b;
}
template <typename T>
Vector<T> apply_vector(Product, Vector<T> a, Vector<T> b) {
  return a * b;
}
template <typename T>
Vector<T> apply_vector(Min, Vector<T> a, Vector<T> b) {
  if constexpr (kIsInteger<T>) {
    return b < a ? b : a;
  } else {
    using Bits = decltype(b < a);
    return ((b < a) | ((b == a) & ((Bits)b < 0)) | (b != b)) ? b : a;
  }
}
template <typename T>
Vector<T> apply_vector(Max, Vector<T> a, Vector<T> b) {
  if constexpr (kIsInteger<T>) {
    return a < b ? b : a;
  } else {
    using Bits = decltype(a < b);
    return ((a < b) | ((b == a) & ((Bits)b >= 0)) | (b != b)) ? b : a;
  }
}

// Types whose steps go in vectors: no conversion, and no meaning of their own for the operations.
template <typename T>
constexpr bool kIsPlain = !Traits<T>::kConverts;
template <>
constexpr bool kIsPlain<Bool> = false;

}  // namespace
}  // namespace hv::runtime
