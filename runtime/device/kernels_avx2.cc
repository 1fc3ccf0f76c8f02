// The kernels for x86-64 processors with AVX2 and F16C; compiled with those switched on.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/kernels.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

#include <cstring>

#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kVectorBytes = 32;

void widen_half(float* to, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < count; ++i) to[i] = float_from_half(from[i]);
}

void narrow_half(std::uint16_t* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) to[i] = half_from_float(from[i]);
}

void copy_in_vectors(void* destination, const void* source, std::size_t bytes) {
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  std::size_t i = 0;
  for (; i + 128 <= bytes; i += 128) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 32));
    const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 64));
    const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 96));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + 32), b);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + 64), c);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + 96), d);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

// Whole cache lines past the caches, the ragged ends through them.
void copy_past_caches(void* destination, const void* source, std::size_t bytes) {
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + 32), high);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

void store_vector_past_caches(void* to, const void* vector) {
  _mm256_stream_si256(static_cast<__m256i*>(to), *static_cast<const __m256i*>(vector));
}

// Makes streamed lines visible before whatever the caller publishes next.
void finish_streaming() { _mm_sfence(); }

}  // namespace
}  // namespace hv::runtime

#include "runtime/device/kernel_loops.h"

namespace hv::runtime {

const Kernels* avx2_table() {
  static const Kernels kernels = make_kernels("avx2", copy_in_vectors);
  return &kernels;
}

}  // namespace hv::runtime
#else
namespace hv::runtime {
const Kernels* avx2_table() { return nullptr; }
}  // namespace hv::runtime
#endif
