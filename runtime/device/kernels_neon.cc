// The kernels for 64-bit ARM processors, all of which have NEON.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstring>

#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kVectorBytes = 32;  // a pair of registers, as the stores below want them

void widen_half(float* to, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(from + i));
    vst1q_f32(to + i, vcvt_f32_f16(vget_low_f16(halves)));
    vst1q_f32(to + i + 4, vcvt_high_f32_f16(halves));
  }
  for (; i < count; ++i) to[i] = float_from_half(from[i]);
}

void narrow_half(std::uint16_t* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(from + i));
    vst1q_u16(to + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(from + i + 4))));
  }
  for (; i < count; ++i) to[i] = half_from_float(from[i]);
}

// STNP: a pair of registers, with the hint that nobody reads them soon.
void store_pair_past_caches(void* to, uint8x16_t low, uint8x16_t high) {
  asm volatile("stnp %q1, %q2, [%0]" : : "r"(to), "w"(low), "w"(high) : "memory");
}

// Whole cache lines past the caches, the ragged ends through them.
void copy_past_caches(void* destination, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::uint8_t*>(destination);
  const auto* from = static_cast<const std::uint8_t*>(source);
  std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    store_pair_past_caches(to + i, vld1q_u8(from + i), vld1q_u8(from + i + 16));
    store_pair_past_caches(to + i + 32, vld1q_u8(from + i + 32), vld1q_u8(from + i + 48));
  }
  std::memcpy(to + i, from + i, bytes - i);
}

void store_vector_past_caches(void* to, const void* vector) {
  const auto* from = static_cast<const std::uint8_t*>(vector);
  store_pair_past_caches(to, vld1q_u8(from), vld1q_u8(from + 16));
}

// Nothing: these stores are ordered by the release that publishes them, as all others are.
void finish_streaming() {}

}  // namespace
}  // namespace hv::runtime

#include "runtime/device/kernel_loops.h"

namespace hv::runtime {

const Kernels* neon_table() {
  static const Kernels kernels = make_kernels("neon", nullptr);
  return &kernels;
}

}  // namespace hv::runtime
#else
namespace hv::runtime {
const Kernels* neon_table() { return nullptr; }
}  // namespace hv::runtime
#endif
