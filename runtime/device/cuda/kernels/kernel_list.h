// The kernels there are, by the types that they move.
// SPDX-License-Identifier: Apache-2.0
//
// Named hvrun_FROM_to_TO; hvrun_copy moves bytes of any type as they are.
#pragma once

// ONE(ElementType's enumerator from, to, element from, to, name from, to)
#define HV_MOVE_KERNELS(ONE)                                    \
  ONE(kUint8, kUint8, std::uint8_t, std::uint8_t, uint8, uint8) \
  ONE(kInt8, kInt8, std::int8_t, std::int8_t, int8, int8)       \
  ONE(kInt16, kInt16, std::int16_t, std::int16_t, int16, int16) \
  ONE(kInt32, kInt32, std::int32_t, std::int32_t, int32, int32) \
  ONE(kInt64, kInt64, std::int64_t, std::int64_t, int64, int64) \
  ONE(kFloat16, kFloat16, Half, Half, float16, float16)         \
  ONE(kBfloat16, kBfloat16, Bfloat, Bfloat, bfloat16, bfloat16) \
  ONE(kFloat32, kFloat32, float, float, float32, float32)       \
  ONE(kFloat64, kFloat64, double, double, float64, float64)     \
  ONE(kFloat32, kFloat16, float, Half, float32, float16)        \
  ONE(kFloat32, kBfloat16, float, Bfloat, float32, bfloat16)    \
  ONE(kFloat64, kFloat16, double, Half, float64, float16)       \
  ONE(kFloat64, kBfloat16, double, Bfloat, float64, bfloat16)   \
  ONE(kFloat16, kFloat32, Half, float, float16, float32)        \
  ONE(kBfloat16, kFloat32, Bfloat, float, bfloat16, float32)    \
  ONE(kFloat16, kFloat64, Half, double, float16, float64)       \
  ONE(kBfloat16, kFloat64, Bfloat, double, bfloat16, float64)
