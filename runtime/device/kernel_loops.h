// The loops behind the kernels, compiled once per instruction set (kernels_portable.cc,
// kernels_avx2.cc, kernels_avx512.cc, kernels_neon.cc).
// SPDX-License-Identifier: Apache-2.0
//
// Work goes in tiles that stay in the first-level cache: fold a tile over all sources into an
// accumulator tile, finish it, store it. The including file defines, before including, what
// kernel_operations.h wants and copy_past_caches, store_vector_past_caches (of kVectorBytes, to an
// address aligned to them) and finish_streaming (the fence after those).
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

template <typename T>
bool is_misaligned(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(T) != 0;
}
template <typename T>
bool is_any_misaligned(const void* to, const void* const* sources, int source_count) {
  bool is_any = is_misaligned<T>(to);
  for (int s = 0; s < source_count; ++s) is_any |= is_misaligned<T>(sources[s]);
  return is_any;
}

// Where a tensor does not lie at a multiple of its element's alignment every tile goes through
// aligned memory.
template <typename T, typename Operation>
void reduce_misaligned(void* to, const void* const* sources, int source_count, std::size_t offset,
                       std::size_t count, const Finish& finish) {
  using A = typename Traits<T>::Accumulator;
  alignas(64) A folded[kTile], next[kTile];
  alignas(64) T raw[kTile];
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    for (int s = 0; s < source_count; ++s) {
      const char* source = static_cast<const char*>(sources[s]) + (offset + done) * sizeof(T);
      std::memcpy(raw, source, part * sizeof(T));
      load_tile<T>(s == 0 ? folded : next, raw, part);
      for (std::size_t i = 0; s > 0 && i < part; ++i)
        folded[i] = Operation::apply(folded[i], next[i]);
    }
    finish_tile(folded, part, finish);
    store_tile<T>(raw, folded, part);
    std::memcpy(static_cast<char*>(to) + done * sizeof(T), raw, part * sizeof(T));
  }
}

// The elements [offset, offset + count) of any number of sources, to the front of `to`.
template <typename T, typename Operation>
void reduce_range(T* to, const void* const* sources, int source_count, std::size_t offset,
                  std::size_t count, const Finish& finish) {
  if (is_any_misaligned<T>(to, sources, source_count))
    return reduce_misaligned<T, Operation>(to, sources, source_count, offset, count, finish);
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

// Where results go: to the destination, there past the caches, or there and to the copies.
enum class Storing { kOnce, kStreamed, kCopied };

// What becomes of a folded vector. Integers: only kNone.
enum class Finishing { kNone, kFactor, kFactorAndDivisor };

template <typename T>
const T* source_of(const ReduceStep& step, int number) {
  return static_cast<const T*>(step.sources[number]);
}

// The elements [begin, returned) of a step: 128 bytes a turn, all but less than a turn. destination
// + begin is aligned to a cache line. kIsOfTwo: there are two sources, else more.
template <typename T, typename Operation, Storing kStoring, Finishing kFinishing, bool kIsOfTwo>
std::size_t step_in_vectors(const ReduceStep& step, std::size_t begin) {
  constexpr std::size_t kLanes = kVectorBytes / sizeof(T), kTurn = 128 / sizeof(T);
  T* to = static_cast<T*>(step.destination);
  const T* a = source_of<T>(step, 0);
  const T* b = source_of<T>(step, 1);
  const T factor = static_cast<T>(step.finish.factor);
  const T divisor = static_cast<T>(step.finish.divisor);
  const int sources = kIsOfTwo ? 2 : step.source_count;
  const std::size_t count = step.count;
  std::size_t i = begin;
  for (; i + kTurn <= count; i += kTurn) {
    for (std::size_t k = i; k < i + kTurn; k += kLanes) {
      Vector<T> result = apply_vector<T>(Operation{}, load_vector<Vector<T>>(a + k),
                                         load_vector<Vector<T>>(b + k));
      for (int s = 2; s < sources; ++s)
        result =
            apply_vector<T>(Operation{}, result, load_vector<Vector<T>>(source_of<T>(step, s) + k));
      if constexpr (kFinishing != Finishing::kNone) result *= factor;
      if constexpr (kFinishing == Finishing::kFactorAndDivisor) result /= divisor;
      if constexpr (!kIsInteger<T>) result = result == result ? result : Vector<T>{} + kQuietNan<T>;
      if constexpr (kStoring == Storing::kStreamed) {
        store_vector_past_caches(to + k, &result);
      } else {
        std::memcpy(to + k, &result, sizeof result);
      }
      for (int c = 0; kStoring == Storing::kCopied && c < step.copy_count; ++c)
        std::memcpy(static_cast<T*>(step.copies[c]) + k, &result, sizeof result);
    }
  }
  return i;
}

template <typename T>
T* copy_of(const ReduceStep& step, int number, std::size_t offset) {
  return static_cast<T*>(step.copies[number]) + offset;
}

// A piece of a step in the general way: any sources, any finish, any copies.
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
    for (int i = 0; i < step.copy_count; ++i)
      std::memcpy(static_cast<void*>(copy_of<T>(step, i, done)),
                  step.is_streamed ? piece : to + done, part * sizeof(T));
  }
}

template <typename T, typename Operation, Storing kStoring, Finishing kFinishing>
std::size_t step_by_sources(const ReduceStep& step, std::size_t begin) {
  if (step.source_count == 2)
    return step_in_vectors<T, Operation, kStoring, kFinishing, true>(step, begin);
  return step_in_vectors<T, Operation, kStoring, kFinishing, false>(step, begin);
}

template <typename T, typename Operation, Storing kStoring>
std::size_t step_by_finish(const ReduceStep& step, std::size_t begin) {
  if constexpr (kIsInteger<T>) {
    return step_by_sources<T, Operation, kStoring, Finishing::kNone>(step, begin);
  } else if (step.finish.divisor == 1) {
    return step_by_sources<T, Operation, kStoring, Finishing::kFactor>(step, begin);
  } else {
    return step_by_sources<T, Operation, kStoring, Finishing::kFactorAndDivisor>(step, begin);
  }
}

// What can go in vectors does, to the end or to less than a turn of it; returns where that is.
template <typename T, typename Operation>
std::size_t step_in_vectors_from(const ReduceStep& step, std::size_t begin) {
  if (step.is_streamed) return step_by_finish<T, Operation, Storing::kStreamed>(step, begin);
  if (step.copy_count > 0) return step_by_finish<T, Operation, Storing::kCopied>(step, begin);
  return step_by_finish<T, Operation, Storing::kOnce>(step, begin);
}

template <typename T>
bool can_step_in_vectors(const ReduceStep& step) {
  const bool is_finished_in_vectors =
      !kIsInteger<T> || (step.finish.factor == 1 && step.finish.divisor == 1);
  const bool is_stored_in_vectors = !step.is_streamed || step.copy_count == 0;
  return step.source_count >= 2 && is_finished_in_vectors && is_stored_in_vectors &&
         !is_misaligned<T>(step.destination);
}

template <typename T, typename Operation>
void reduce_step_loop(const ReduceStep& step) {
  std::size_t done = 0;
  if constexpr (kIsPlain<T>) {
    if (can_step_in_vectors<T>(step)) {
      const std::size_t ahead =
          (64 - reinterpret_cast<std::uintptr_t>(step.destination) % 64) % 64 / sizeof(T);
      const std::size_t head = ahead < step.count ? ahead : step.count;
      step_in_pieces<T, Operation>(step, 0, head);
      done = step_in_vectors_from<T, Operation>(step, head);
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

// load_tile and store_tile at any address: elements [offset, offset + count) from `from`, or to
// `to`.
template <typename T>
void load_tile_anywhere(typename Traits<T>::Accumulator* tile, const void* from, std::size_t offset,
                        std::size_t count) {
  if (!is_misaligned<T>(from))
    return load_tile<T>(tile, static_cast<const T*>(from) + offset, count);
  alignas(64) T raw[kTile];
  std::memcpy(raw, static_cast<const char*>(from) + offset * sizeof(T), count * sizeof(T));
  load_tile<T>(tile, raw, count);
}
template <typename T>
void store_tile_anywhere(void* to, std::size_t offset, const typename Traits<T>::Accumulator* tile,
                         std::size_t count) {
  if (!is_misaligned<T>(to)) return store_tile<T>(static_cast<T*>(to) + offset, tile, count);
  alignas(64) T raw[kTile];
  store_tile<T>(raw, tile, count);
  std::memcpy(static_cast<char*>(to) + offset * sizeof(T), raw, count * sizeof(T));
}

template <typename T>
void dot_loop(const void* a, const void* b, std::size_t count, DotSums* sums) {
  using A = typename Traits<T>::Accumulator;
  alignas(64) A a_tile[kTile];
  alignas(64) A b_tile[kTile];
  DotSums local = *sums;
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    load_tile_anywhere<T>(a_tile, a, done, part);
    load_tile_anywhere<T>(b_tile, b, done, part);
    const std::size_t rest = part % kDotLanes;
    // What is missing of the last lanes adds zeros.
    for (std::size_t i = part; rest != 0 && i < part - rest + kDotLanes; ++i)
      a_tile[i] = b_tile[i] = 0;
    for (std::size_t i = 0; i < part; i += kDotLanes) {
      for (std::size_t lane = 0; lane < kDotLanes; ++lane) {
        const double x = static_cast<double>(a_tile[i + lane]);
        const double y = static_cast<double>(b_tile[i + lane]);
        local.ab[lane] += x * y;
        local.aa[lane] += x * x;
        local.bb[lane] += y * y;
      }
    }
  }
  *sums = local;
}

template <typename T>
void blend_loop(void* destination, const void* a, const void* b, std::size_t count, double a_factor,
                double b_factor) {
  using A = typename Traits<T>::Accumulator;
  alignas(64) A a_tile[kTile];
  alignas(64) A b_tile[kTile];
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    load_tile_anywhere<T>(a_tile, a, done, part);
    load_tile_anywhere<T>(b_tile, b, done, part);
    for (std::size_t i = 0; i < part; ++i)
      a_tile[i] = canonical(static_cast<A>(static_cast<double>(a_tile[i]) * a_factor +
                                           static_cast<double>(b_tile[i]) * b_factor));
    store_tile_anywhere<T>(destination, done, a_tile, part);
  }
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

template <typename T>
void fill_floating_row(Kernels* kernels, ElementType type) {
  fill_row<T>(kernels, type);
  kernels->dot[static_cast<int>(type)] = dot_loop<T>;
  kernels->blend[static_cast<int>(type)] = blend_loop<T>;
}

template <typename T, typename Wire>
void pack_loop(void* destination, const void* source, std::size_t count, double factor) {
  alignas(64) float tile[kTile];
  const T scale = static_cast<T>(factor);
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    alignas(64) T values[kTile];
    load_tile_anywhere<T>(values, source, done, part);
    for (std::size_t i = 0; i < part; ++i)
      tile[i] = canonical(static_cast<float>(values[i] * scale));
    store_tile_anywhere<Wire>(destination, done, tile, part);
  }
}

template <typename T, typename Wire>
void unpack_loop(void* destination, const void* source, std::size_t count) {
  alignas(64) float tile[kTile];
  alignas(64) T values[kTile];
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t part = count - done < kTile ? count - done : kTile;
    load_tile_anywhere<Wire>(tile, source, done, part);
    for (std::size_t i = 0; i < part; ++i) values[i] = static_cast<T>(tile[i]);
    store_tile_anywhere<T>(destination, done, values, part);
  }
}

template <typename T>
void fill_wire_row(Kernels* kernels, ElementType type) {
  const auto set = [&](Compression compression, ScaleKernel pack, UnpackKernel unpack) {
    kernels->pack[static_cast<int>(type)][static_cast<int>(compression)] = pack;
    kernels->unpack[static_cast<int>(type)][static_cast<int>(compression)] = unpack;
  };
  set(Compression::kFloat16, pack_loop<T, Half>, unpack_loop<T, Half>);
  set(Compression::kBfloat16, pack_loop<T, Bfloat>, unpack_loop<T, Bfloat>);
}

void stream_copy(void* destination, const void* source, std::size_t bytes) {
  copy_past_caches(destination, source, bytes);
  finish_streaming();
}

void copy_by_memcpy(void* destination, const void* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

// vector_copy: nullptr where memcpy is as good.
Kernels make_kernels(const char* name, CopyKernel vector_copy) {
  Kernels kernels{};
  kernels.name = name;
  fill_row<std::uint8_t>(&kernels, ElementType::kUint8);
  fill_row<std::int8_t>(&kernels, ElementType::kInt8);
  fill_row<std::int16_t>(&kernels, ElementType::kInt16);
  fill_row<std::int32_t>(&kernels, ElementType::kInt32);
  fill_row<std::int64_t>(&kernels, ElementType::kInt64);
  fill_floating_row<Half>(&kernels, ElementType::kFloat16);
  fill_floating_row<Bfloat>(&kernels, ElementType::kBfloat16);
  fill_floating_row<float>(&kernels, ElementType::kFloat32);
  fill_floating_row<double>(&kernels, ElementType::kFloat64);
  fill_row<Bool>(&kernels, ElementType::kBool);
  fill_floating_row<E4m3>(&kernels, ElementType::kFloat8E4M3);
  fill_floating_row<E5m2>(&kernels, ElementType::kFloat8E5M2);
  fill_wire_row<float>(&kernels, ElementType::kFloat32);
  fill_wire_row<double>(&kernels, ElementType::kFloat64);
  kernels.vector_copy = vector_copy;
  kernels.copy = vector_copy != nullptr && has_slow_string_copies() ? vector_copy : copy_by_memcpy;
  kernels.stream_copy = stream_copy;
  return kernels;
}

}  // namespace
}  // namespace hv::runtime
