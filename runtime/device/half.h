// float16 and bfloat16 to float32 and back: round to nearest, ties to even; NaNs become quiet.
// SPDX-License-Identifier: Apache-2.0
//
// Bit for bit what the F16C instructions do. Everything is static: the file is compiled once for
// every instruction set and for GPUs, and the linker must not merge the copies.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/device/also_on_gpu.h"

namespace hv::runtime {
namespace {

HV_ALSO_ON_GPU inline float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

HV_ALSO_ON_GPU inline std::uint32_t bits_from_float(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

HV_ALSO_ON_GPU inline float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
  const std::uint32_t special = 0x7f800000u | (mantissa << 13) | quiet;
  const std::uint32_t normal = ((exponent + 112) << 23) | (mantissa << 13);
  // A subnormal half is mantissa * 2^-24, exact in float32.
  const std::uint32_t subnormal = bits_from_float(static_cast<float>(mantissa) * 0x1p-24f);
  return float_from_bits(sign | (exponent == 0x1f ? special : exponent == 0 ? subnormal : normal));
}

HV_ALSO_ON_GPU inline std::uint16_t half_from_float(float value) {
  const std::uint32_t bits = bits_from_float(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  // Subnormal: adding 0.5 leaves value / 2^-24, rounded to nearest even, in the low mantissa bits.
  const float shifted = float_from_bits(magnitude) + 0.5f;
  const std::uint32_t subnormal = bits_from_float(shifted) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const std::uint32_t rounded = magnitude >= 0x477ff000u ? 0x7c00u : finite;  // to 65536 or more
  return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000u ? nan : rounded));
}

HV_ALSO_ON_GPU inline float float_from_bfloat(std::uint16_t bfloat) {
  return float_from_bits(static_cast<std::uint32_t>(bfloat) << 16);
}

HV_ALSO_ON_GPU inline std::uint16_t bfloat_from_float(float value) {
  const std::uint32_t bits = bits_from_float(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

}  // namespace
}  // namespace hv::runtime
