// What becomes of one element on its way: scaled, and of another type.
// SPDX-License-Identifier: Apache-2.0
//
// Bit for bit what the host's kernels make of it: kernel_loops.h's scale_loop, pack_loop and
// unpack_loop, and kernel_operations.h's finish_tile.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/device/cuda/kernels/strip_list.h"
#include "runtime/device/element_arithmetic.h"

namespace hv::cuda {
namespace {

using runtime::Bfloat;
using runtime::Half;

template <typename T>
constexpr bool kIsHalfPrecision = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

// By a card's own instructions, exact but for NaN, whose payload they lose.
#ifdef __CUDA_ARCH__
__device__ float widened_half(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  const std::uint32_t shifted = static_cast<std::uint32_t>(static_cast<std::int16_t>(bits)) << 13;
  return value == value ? value : runtime::float_from_bits(shifted | 0x7fc00000u);
}
__device__ std::uint16_t narrowed_half(float value) {
  std::uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  const std::uint32_t bits = runtime::bits_from_float(value);
  const std::uint32_t nan = (bits >> 16 & 0x8000u) | 0x7e00u | (bits >> 13 & 0x3ffu);
  return value == value ? half : static_cast<std::uint16_t>(nan);
}
#else
HV_ALSO_ON_GPU inline float widened_half(std::uint16_t bits) {
  return runtime::float_from_half(bits);
}
HV_ALSO_ON_GPU inline std::uint16_t narrowed_half(float value) {
  return runtime::half_from_float(value);
}
#endif

// As it is computed with, and back.
template <typename T>
HV_ALSO_ON_GPU T widened(T value) {
  return value;
}
HV_ALSO_ON_GPU inline float widened(Half value) { return widened_half(value.bits); }
HV_ALSO_ON_GPU inline float widened(Bfloat value) { return runtime::float_from_bfloat(value.bits); }

template <typename T>
HV_ALSO_ON_GPU void narrow(T value, T* to) {
  *to = value;
}
HV_ALSO_ON_GPU inline void narrow(float value, Half* to) { to->bits = narrowed_half(value); }
HV_ALSO_ON_GPU inline void narrow(float value, Bfloat* to) {
  to->bits = runtime::bfloat_from_float(value);
}

template <typename T>
HV_ALSO_ON_GPU T scaled(T value, const Scaling& scaling) {
  if constexpr (runtime::kIsInteger<T>) {
    if (scaling.factor != 1)
      value = static_cast<T>(runtime::saturated(static_cast<double>(value) * scaling.factor));
    if (scaling.divisor == 1) return value;
    return static_cast<T>(static_cast<std::int64_t>(value) / scaling.divisor);
  } else {
    return runtime::canonical(value * static_cast<T>(scaling.factor));
  }
}

// A NaN becomes quiet and keeps its sign and payload, as on the host: GPUs' own instruction gives
// another one.
HV_ALSO_ON_GPU inline void extend(float value, float* to) { *to = value; }
HV_ALSO_ON_GPU inline void extend(float value, double* to) {
  *to = static_cast<double>(value);
  if (value == value) return;
  const std::uint64_t bits = runtime::bits_from_float(value);
  const std::uint64_t extended = bits >> 31 << 63 | 0xfffull << 51 | (bits & 0x7fffffu) << 29;
  std::memcpy(to, &extended, sizeof extended);
}

template <typename From, typename To>
HV_ALSO_ON_GPU To converted(From value, const Scaling& scaling) {
  To result;
  if constexpr (std::is_same_v<From, To>) {
    narrow(scaled(widened(value), scaling), &result);
  } else if constexpr (kIsHalfPrecision<To>) {
    const From product = value * static_cast<From>(scaling.factor);
    narrow(runtime::canonical(static_cast<float>(product)), &result);
  } else {
    extend(widened(value), &result);
    if (scaling.factor != 1) result = scaled(result, scaling);
  }
  return result;
}

}  // namespace
}  // namespace hv::cuda
