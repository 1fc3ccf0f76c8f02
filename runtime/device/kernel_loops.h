// The loops behind the kernels, compiled once per instruction set (kernels_portable.cc,
// kernels_avx2.cc).
// SPDX-License-Identifier: Apache-2.0
//
// Work goes in tiles that stay in the first-level cache: fold a tile over all sources into an
// accumulator tile, finish it, store it. The including file defines, before including, what
// kernel_operations.h wants and copy_through_caches, copy_past_caches, store_vector_past_caches,
// finish_streaming (the fence after those) and prefetch_to_write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/kernel_operations.h"
#include "runtime/device/kernels.h"

namespace hv::runtime {
namespace {

template <typename T, typename Operation>
void fold_tile(typename Traits<T>::Accumulator* accumulator, const void* const* sources,
               int source_count, std::size_t offset, std::size_t count) {
  using A = typename Traits<T>::Accumulator;
  load_tile<T>(accumulator, static_cast<const T*>(sources[0]) + offset, count);
  for (int s = 1; s < source_count; ++s) {
    const T* source = static_cast<const T*>(sources[s]) + offset;
    if constexpr (Traits<T>::kConverts) {
      alignas(64) A widened[kTile];
      load_tile<T>(widened, source, count);
      for (std::size_t i = 0; i < count; ++i)
        accumulator[i] = Operation::apply(accumulator[i], widened[i]);
    } else {
      for (std::size_t i = 0; i < count; ++i)
        accumulator[i] = Operation::apply(accumulator[i], source[i]);
    }
  }
}

// The commonest case, two sources of a type that needs no conversion: one pass, no tile.
template <typename T, typename Operation>
void reduce_two(T* to, const T* a, const T* b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = canonical(Operation::apply(a[i], b[i]));
}
template <typename T, typename Operation>
void reduce_two_scaled(T* to, const T* a, const T* b, std::size_t count, T factor) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = canonical(Operation::apply(a[i], b[i]) * factor);
}

template <typename T, typename Operation>
bool reduce_in_one_pass(T* to, const void* const* sources, int source_count, std::size_t offset,
                        std::size_t count, const Finish& finish) {
  if constexpr (Traits<T>::kConverts) {
    return false;
  } else {
    if (source_count != 2 || finish.divisor != 1) return false;
    const T* a = static_cast<const T*>(sources[0]) + offset;
    const T* b = static_cast<const T*>(sources[1]) + offset;
    if (finish.factor == 1) {
      reduce_two<T, Operation>(to, a, b, count);
      return true;
    }
    if constexpr (sizeof(T) >= 4 && !kIsInteger<T>) {
      reduce_two_scaled<T, Operation>(to, a, b, count, static_cast<T>(finish.factor));
      return true;
    }
    return false;
  }
}
template <>
bool reduce_in_one_pass<Bool, Sum>(Bool*, const void* const*, int, std::size_t, std::size_t,
                                   const Finish&) {
  return false;
}
template <>
bool reduce_in_one_pass<Bool, Product>(Bool*, const void* const*, int, std::size_t, std::size_t,
                                       const Finish&) {
  return false;
}
template <>
bool reduce_in_one_pass<Bool, Min>(Bool*, const void* const*, int, std::size_t, std::size_t,
                                   const Finish&) {
  return false;
}
template <>
bool reduce_in_one_pass<Bool, Max>(Bool*, const void* const*, int, std::size_t, std::size_t,
                                   const Finish&) {
  return false;
}

// The elements [offset, offset + count) of any number of sources, to the front of `to`.
template <typename T, typename Operation>
void reduce_range(T* to, const void* const* sources, int source_count, std::size_t offset,
                  std::size_t count, const Finish& finish) {
  if (reduce_in_one_pass<T, Operation>(to, sources, source_count, offset, count, finish)) return;
  alignas(64) typename Traits<T>::Accumulator tile[kTile];
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    fold_tile<T, Operation>(tile, sources, source_count, offset + done, part);
    finish_tile(tile, part, finish);
    store_tile<T>(to + done, tile, part);
  }
}

template <typename T, typename Operation>
void reduce_loop(void* destination, const void* const* sources, int source_count, std::size_t count,
                 const Finish& finish) {
  reduce_range<T, Operation>(static_cast<T*>(destination), sources, source_count, 0, count, finish);
}

// A slot's lines were last read by a peer: asked for this far ahead, they are this core's again when
// they are written (measured: nothing lost where the cores share a cache, 5-15 % won where not).
constexpr std::size_t kWriteAheadBytes = 256;

// 128 bytes a turn of destination = a op b (times factor), and of the copy, interleaved.
// destination is aligned to 32 bytes. Returns the elements done: all but less than a turn.
template <typename T, typename Operation, bool kStreamed, bool kCopies>
std::size_t step_in_vectors(T* to, const T* a, const T* b, std::size_t count, T factor, T* copy_to,
                            const T* copy_from) {
  constexpr std::size_t kLanes = 32 / sizeof(T);
  std::size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    if constexpr (kCopies) {
      const char* soon = reinterpret_cast<const char*>(copy_to + i) + kWriteAheadBytes;
      prefetch_to_write(soon);
      prefetch_to_write(soon + 64);
    }
    for (std::size_t k = i; k < i + 4 * kLanes; k += kLanes) {
      Vector<T> result = apply_vector<T>(Operation{}, load_vector<Vector<T>>(a + k),
                                         load_vector<Vector<T>>(b + k));
      if constexpr (!kIsInteger<T>) {
        result *= factor;
        result = result == result ? result : Vector<T>{} + kQuietNan<T>;
      }
      if constexpr (kCopies) {
        const auto copied = load_vector<Vector<T>>(copy_from + k);
        std::memcpy(copy_to + k, &copied, sizeof copied);
      }
      if constexpr (kStreamed) {
        store_vector_past_caches(to + k, &result);
      } else {
        std::memcpy(to + k, &result, sizeof result);
      }
    }
  }
  return i;
}

// A piece of a step in the general way: any sources, any finish.
template <typename T, typename Operation>
void step_in_pieces(const ReduceStep& step, std::size_t begin, std::size_t end) {
  constexpr std::size_t kPiece = 512 / sizeof(T);
  T* to = static_cast<T*>(step.destination);
  alignas(64) T piece[kPiece];
  for (std::size_t done = begin; done < end; done += kPiece) {
    const std::size_t part = end - done < kPiece ? end - done : kPiece;
    reduce_range<T, Operation>(step.is_streamed ? piece : to + done, step.sources,
                               step.source_count, done, part, step.finish);
    if (step.is_streamed) copy_past_caches(to + done, piece, part * sizeof(T));
    if (step.copy_to != nullptr)
      copy_through_caches(static_cast<T*>(step.copy_to) + done,
                          static_cast<const T*>(step.copy_from) + done, part * sizeof(T));
  }
}

// The elements [begin, returned) of a step of two sources, in vectors.
template <typename T, typename Operation>
std::size_t step_of_two(const ReduceStep& step, std::size_t begin) {
  T* to = static_cast<T*>(step.destination) + begin;
  const T* a = static_cast<const T*>(step.sources[0]) + begin;
  const T* b = static_cast<const T*>(step.sources[1]) + begin;
  const std::size_t count = step.count - begin;
  const T factor = static_cast<T>(step.finish.factor);
  if (step.copy_to == nullptr) {
    return begin + (step.is_streamed ? step_in_vectors<T, Operation, true, false>(
                                           to, a, b, count, factor, nullptr, nullptr)
                                     : step_in_vectors<T, Operation, false, false>(
                                           to, a, b, count, factor, nullptr, nullptr));
  }
  T* copy_to = static_cast<T*>(step.copy_to) + begin;
  const T* copy_from = static_cast<const T*>(step.copy_from) + begin;
  return begin + (step.is_streamed ? step_in_vectors<T, Operation, true, true>(
                                         to, a, b, count, factor, copy_to, copy_from)
                                   : step_in_vectors<T, Operation, false, true>(
                                         to, a, b, count, factor, copy_to, copy_from));
}

template <typename T, typename Operation>
void reduce_step_loop(const ReduceStep& step) {
  std::size_t done = 0;
  if constexpr (kIsPlain<T>) {
    const bool has_simple_finish =
        step.finish.divisor == 1 && (!kIsInteger<T> || step.finish.factor == 1);
    if (step.source_count == 2 && has_simple_finish) {
      const std::size_t ahead =
          (64 - reinterpret_cast<std::uintptr_t>(step.destination) % 64) % 64 / sizeof(T);
      const std::size_t head = ahead < step.count ? ahead : step.count;
      step_in_pieces<T, Operation>(step, 0, head);
      done = step_of_two<T, Operation>(step, head);
    }
  }
  step_in_pieces<T, Operation>(step, done, step.count);
  if (step.is_streamed) finish_streaming();
}

template <typename T>
void scale_loop(void* destination, const void* source, std::size_t count, double factor) {
  const void* sources[1] = {source};
  reduce_loop<T, Sum>(destination, sources, 1, count, Finish{factor, 1});
}

template <typename T>
void fill_row(Kernels* kernels, ElementType type) {
  const int row = static_cast<int>(type);
  const auto set = [&](Reduction reduction, ReduceKernel plain, ReduceStepKernel step) {
    kernels->reduce[row][static_cast<int>(reduction)] = plain;
    kernels->reduce_step[row][static_cast<int>(reduction)] = step;
  };
  set(Reduction::kSum, reduce_loop<T, Sum>, reduce_step_loop<T, Sum>);
  set(Reduction::kAverage, reduce_loop<T, Sum>, reduce_step_loop<T, Sum>);
  set(Reduction::kMin, reduce_loop<T, Min>, reduce_step_loop<T, Min>);
  set(Reduction::kMax, reduce_loop<T, Max>, reduce_step_loop<T, Max>);
  set(Reduction::kProduct, reduce_loop<T, Product>, reduce_step_loop<T, Product>);
  kernels->scale[row] = scale_loop<T>;
}

void stream_copy(void* destination, const void* source, std::size_t bytes) {
  copy_past_caches(destination, source, bytes);
  finish_streaming();
}

Kernels make_kernels(const char* name) {
  Kernels kernels{};
  kernels.name = name;
  fill_row<std::uint8_t>(&kernels, ElementType::kUint8);
  fill_row<std::int8_t>(&kernels, ElementType::kInt8);
  fill_row<std::int16_t>(&kernels, ElementType::kInt16);
  fill_row<std::int32_t>(&kernels, ElementType::kInt32);
  fill_row<std::int64_t>(&kernels, ElementType::kInt64);
  fill_row<Half>(&kernels, ElementType::kFloat16);
  fill_row<Bfloat>(&kernels, ElementType::kBfloat16);
  fill_row<float>(&kernels, ElementType::kFloat32);
  fill_row<double>(&kernels, ElementType::kFloat64);
  fill_row<Bool>(&kernels, ElementType::kBool);
  kernels.copy = copy_through_caches;
  kernels.stream_copy = stream_copy;
  return kernels;
}

}  // namespace
}  // namespace hv::runtime
