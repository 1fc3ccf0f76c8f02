// The kernels for x86-64 processors with AVX-512 (F, BW, DQ, VL); compiled with those switched on.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

#include <cstring>

#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kVectorBytes = 64;

// The masked forms convert all the same: gcc 12 takes the plain ones for reads of nothing.
constexpr __mmask16 kAll = 0xffff;

void widen_half(float* to, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(to + i,
                     _mm512_maskz_cvtph_ps(
                         kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
  for (; i < count; ++i) to[i] = float_from_half(from[i]);
}

void narrow_half(std::uint16_t* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(to + i),
        _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) to[i] = half_from_float(from[i]);
}

void copy_in_vectors(void* destination, const void* source, std::size_t bytes) {
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  std::size_t i = 0;
  for (; i + 128 <= bytes; i += 128) {
    const __m512i low = _mm512_loadu_si512(from + i);
    const __m512i high = _mm512_loadu_si512(from + i + 64);
    _mm512_storeu_si512(to + i, low);
    _mm512_storeu_si512(to + i + 64, high);
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
  for (; i + 64 <= bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  std::memcpy(to + i, from + i, bytes - i);
}

void store_vector_past_caches(void* to, const void* vector) {
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(vector));
}

// Makes streamed lines visible before whatever the caller publishes next.
void finish_streaming() { _mm_sfence(); }

}  // namespace
}  // namespace hv::runtime

#include "runtime/device/kernel_loops.h"

namespace hv::runtime {

const Kernels* avx512_table() {
  static const Kernels kernels = make_kernels("avx512", copy_in_vectors);
  return &kernels;
}

}  // namespace hv::runtime
#else
namespace hv::runtime {
const Kernels* avx512_table() { return nullptr; }
}  // namespace hv::runtime
#endif
