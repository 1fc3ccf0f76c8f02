// The kernels in plain C++, for any processor.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kVectorBytes = 32;

void widen_half(float* to, const std::uint16_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_from_half(from[i]);
}

void narrow_half(std::uint16_t* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = half_from_float(from[i]);
}

void copy_past_caches(void* destination, const void* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

void store_vector_past_caches(void* to, const void* vector) {
  std::memcpy(to, vector, kVectorBytes);
}

void finish_streaming() {}

}  // namespace
}  // namespace hv::runtime

#include "runtime/device/kernel_loops.h"

namespace hv::runtime {

const Kernels& portable_kernels() {
  static const Kernels kernels = make_kernels("portable", nullptr);
  return kernels;
}

}  // namespace hv::runtime
