// float8 e4m3 and e5m2 to float32 and back: round to nearest, ties to even.
// SPDX-License-Identifier: Apache-2.0
//
// The formats of the OCP 8-bit Floating Point Specification (OFP8), which PyTorch calls
// torch.float8_e4m3fn and torch.float8_e5m2; converted in its mode that does not saturate. e4m3 has
// no infinity: what would round to more than 448 becomes a NaN. What is too large for e5m2 becomes
// infinite. Every NaN becomes 0x7f, with its sign. Bit for bit as PyTorch converts, but that newer
// ones of it (2.13) make 448 of what is too large for e4m3. All static, for the reason in half.h.
#pragma once

#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

// A choice that compilers make in vectors: with ?: they would compute the sum of floats behind it
// only where it is wanted, one by one.
HV_ALSO_ON_GPU inline std::uint32_t chosen(bool is_first, std::uint32_t first,
                                           std::uint32_t second) {
  return second ^ ((first ^ second) & (0u - static_cast<std::uint32_t>(is_first)));
}

HV_ALSO_ON_GPU inline float float_from_e4m3(std::uint8_t e4m3) {
  const std::uint32_t sign = static_cast<std::uint32_t>(e4m3 & 0x80u) << 24;
  const std::uint32_t magnitude = e4m3 & 0x7fu;
  const std::uint32_t normal = (magnitude << 20) + (120u << 23);
  // Below 8 it is subnormal: magnitude * 2^-9, exact in float32.
  const std::uint32_t subnormal = bits_from_float(static_cast<float>(magnitude) * 0x1p-9f);
  const std::uint32_t finite = magnitude < 8 ? subnormal : normal;
  return float_from_bits(sign | (magnitude == 0x7f ? 0x7fc00000u : finite));
}

// The upper half of a float16.
HV_ALSO_ON_GPU inline float float_from_e5m2(std::uint8_t e5m2) {
  return float_from_half(static_cast<std::uint16_t>(e5m2 << 8));
}

// The magnitude of a float, as bits, in a format that lacks its lowest kDropped bits and whose
// exponents are less by kBias: rounded to nearest, ties to even; what is too large is the caller's.
template <int kDropped, std::uint32_t kBias>
HV_ALSO_ON_GPU inline std::uint32_t rounded_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t kLeastNormal = (kBias + 1) << 23;
  const std::uint32_t odd = (magnitude >> kDropped) & 1u;
  const std::uint32_t normal =
      (magnitude - (kBias << 23) + (1u << (kDropped - 1)) - 1 + odd) >> kDropped;
  // Subnormal: adding 2^23 of the smallest leaves value / smallest, rounded to nearest even, in the
  // low mantissa bits.
  constexpr std::uint32_t kUnits = kLeastNormal + (static_cast<std::uint32_t>(kDropped) << 23);
  const float shifted = float_from_bits(magnitude) + float_from_bits(kUnits);
  const std::uint32_t subnormal = bits_from_float(shifted) - kUnits;
  return chosen(magnitude < kLeastNormal, subnormal, normal);
}

HV_ALSO_ON_GPU inline std::uint8_t e4m3_from_float(float value) {
  const std::uint32_t bits = bits_from_float(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t finite = rounded_magnitude<20, 120>(magnitude);
  const std::uint32_t rounded = chosen(magnitude > 0x43e80000u, 0x7f, finite);  // 464 is a tie
  return static_cast<std::uint8_t>(sign | rounded);
}

HV_ALSO_ON_GPU inline std::uint8_t e5m2_from_float(float value) {
  const std::uint32_t bits = bits_from_float(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t finite = rounded_magnitude<21, 112>(magnitude);
  const std::uint32_t rounded = chosen(magnitude >= 0x47700000u, 0x7c, finite);  // to 65536 or more
  return static_cast<std::uint8_t>(sign | chosen(magnitude > 0x7f800000u, 0x7f, rounded));
}

}  // namespace
}  // namespace hv::runtime
