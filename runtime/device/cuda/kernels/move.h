// The kernels' bodies: what one thread of a launch does.
// SPDX-License-Identifier: Apache-2.0
//
// Chunks go round the blocks, so that a long strip occupies many of them and short ones share.
// Within a chunk neighbouring threads take neighbouring words, of 16 bytes on the wider side, and
// have four of them on their way at once: that is what keeps a GPU's memory busy.
//
// The stand-in for CUDA's driver runs the same code on the host, thread after thread: nothing here
// waits for another thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/device/cuda/kernels/conversions.h"
#include "runtime/device/cuda/kernels/strip_list.h"

// Words and elements of a thread that an index which is not constant would keep out of registers.
#ifdef __CUDACC__
#define HV_UNROLLED _Pragma("unroll")
#else
#define HV_UNROLLED
#endif

namespace hv::cuda {
namespace {

struct Place {
  unsigned block, blocks, thread, threads;
};

// What a thread loads or stores at once.
template <unsigned kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  struct alignas(8) Type {
    std::uint32_t parts[2];
  };
};
template <>
struct WordOf<16> {
  struct alignas(16) Type {
    std::uint32_t parts[4];
  };
};
template <unsigned kBytes>
using Word = typename WordOf<kBytes>::Type;

// An address that is not aligned to its word ends a GPU's launch with an error, and the process
// here.
#ifdef __CUDA_ARCH__
template <typename W>
__device__ W load(std::uint64_t address) {
  return *reinterpret_cast<const W*>(address);
}
template <typename W>
__device__ void store(std::uint64_t address, const W& word) {
  if constexpr (sizeof(W) == 16) {  // the compiler would store four floats one by one
    asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(address), "r"(word.parts[0]), "r"(word.parts[1]), "r"(word.parts[2]),
                   "r"(word.parts[3])
                 : "memory");
  } else {
    *reinterpret_cast<W*>(address) = word;
  }
}
#else
template <typename W>
HV_ALSO_ON_GPU W load(std::uint64_t address) {
  if (address % sizeof(W) != 0) __builtin_trap();
  W word;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}
template <typename W>
HV_ALSO_ON_GPU void store(std::uint64_t address, const W& word) {
  if (address % sizeof(W) != 0) __builtin_trap();
  std::memcpy(reinterpret_cast<void*>(address), &word, sizeof word);
}
#endif

// What a kernel does to each element. kWords: how many of a thread's are on their way at once.
// Mostly that is 64 bytes of reads, by words of 16, or of 8 where they become wider. A word of half
// precision that stays so holds eight elements, and two keep as many registers as others' four;
// integers are computed with in float64, and more than one word would not make that faster.
template <typename F, typename T>
struct Conversion {
  using From = F;
  using To = T;
  static constexpr bool kIsCopy = false;
  static constexpr unsigned kWords = std::is_integral_v<F>                        ? 1
                                     : kIsHalfPrecision<F> && kIsHalfPrecision<T> ? 2
                                     : sizeof(F) < sizeof(T)                      ? 8
                                                                                  : 4;
  HV_ALSO_ON_GPU static T of(F value, const Scaling& scaling) {
    return converted<F, T>(value, scaling);
  }
};
struct Copy {
  using From = std::uint8_t;
  using To = std::uint8_t;
  static constexpr bool kIsCopy = true;
  static constexpr unsigned kWords = 4;
  HV_ALSO_ON_GPU static std::uint8_t of(std::uint8_t value, const Scaling&) { return value; }
};

template <class Move, unsigned kGroup>
using FromWord = Word<kGroup * sizeof(typename Move::From)>;
template <class Move, unsigned kGroup>
using ToWord = Word<kGroup * sizeof(typename Move::To)>;

template <class Move, unsigned kGroup>
HV_ALSO_ON_GPU ToWord<Move, kGroup> group_of(const FromWord<Move, kGroup>& word,
                                             const Scaling& scaling) {
  if constexpr (Move::kIsCopy) {
    return word;
  } else {
    typename Move::From values[kGroup];
    typename Move::To results[kGroup];
    std::memcpy(values, &word, sizeof word);
    HV_UNROLLED for (unsigned i = 0; i < kGroup; ++i) results[i] = Move::of(values[i], scaling);
    ToWord<Move, kGroup> result;
    std::memcpy(&result, results, sizeof result);
    return result;
  }
}

// A piece of a strip that lies in one chunk.
struct Piece {
  std::uint64_t from, to;
  std::uint32_t count;  // elements
  Scaling scaling;
};

template <class Move>
HV_ALSO_ON_GPU Piece part_of(const Piece& piece, std::uint32_t begin, std::uint32_t count) {
  return {piece.from + std::uint64_t{begin} * sizeof(typename Move::From),
          piece.to + std::uint64_t{begin} * sizeof(typename Move::To), count, piece.scaling};
}

// Whole groups, each aligned to its words on both sides.
template <class Move, unsigned kGroup>
HV_ALSO_ON_GPU void move_groups(const Piece& piece, const Place& place) {
  using In = FromWord<Move, kGroup>;
  using Out = ToWord<Move, kGroup>;
  const std::uint32_t groups = piece.count / kGroup;
  for (std::uint32_t first = place.thread; first < groups; first += Move::kWords * place.threads) {
    In words[Move::kWords];
    HV_UNROLLED for (unsigned k = 0; k < Move::kWords; ++k) {
      const std::uint32_t group = first + k * place.threads;
      if (group < groups) words[k] = load<In>(piece.from + std::uint64_t{group} * sizeof(In));
    }
    HV_UNROLLED for (unsigned k = 0; k < Move::kWords; ++k) {
      const std::uint32_t group = first + k * place.threads;
      if (group < groups)
        store<Out>(piece.to + std::uint64_t{group} * sizeof(Out),
                   group_of<Move, kGroup>(words[k], piece.scaling));
    }
  }
}

// One element; where it is not aligned to itself, byte by byte.
template <class Move>
HV_ALSO_ON_GPU void move_one(const Piece& one, bool is_aligned) {
  using In = FromWord<Move, 1>;
  using Out = ToWord<Move, 1>;
  In word;
  if (is_aligned) {
    word = load<In>(one.from);
  } else {
    std::uint8_t bytes[sizeof word];
    for (unsigned k = 0; k < sizeof word; ++k) bytes[k] = load<std::uint8_t>(one.from + k);
    std::memcpy(&word, bytes, sizeof word);
  }
  const Out result = group_of<Move, 1>(word, one.scaling);
  if (is_aligned) return store<Out>(one.to, result);
  std::uint8_t bytes[sizeof result];
  std::memcpy(bytes, &result, sizeof result);
  for (unsigned k = 0; k < sizeof result; ++k) store<std::uint8_t>(one.to + k, bytes[k]);
}

// The elements before `head` and those behind it and `grouped` more, one by one.
template <class Move>
HV_ALSO_ON_GPU void move_singly(const Piece& piece, std::uint32_t head, std::uint32_t grouped,
                                const Place& place) {
  const bool is_aligned =
      piece.from % sizeof(typename Move::From) == 0 && piece.to % sizeof(typename Move::To) == 0;
  for (std::uint32_t i = place.thread; i < piece.count - grouped; i += place.threads)
    move_one<Move>(part_of<Move>(piece, i < head ? i : i + grouped, 1), is_aligned);
}

// In groups where both sides come to a group's alignment at the same element. What is only copied
// goes in smaller groups else, all other elements one by one: that is slower, and a buffer that is
// laid out for 16 bytes has none of it.
template <class Move, unsigned kGroup>
HV_ALSO_ON_GPU void move_piece(const Piece& piece, const Place& place) {
  if constexpr (kGroup == 1) {
    move_singly<Move>(piece, 0, 0, place);
  } else {
    constexpr std::uint32_t kFromBytes = sizeof(FromWord<Move, kGroup>);
    constexpr std::uint32_t kToBytes = sizeof(ToWord<Move, kGroup>);
    constexpr std::uint32_t kElement = sizeof(typename Move::From);
    const std::uint32_t missing =
        (kFromBytes - static_cast<std::uint32_t>(piece.from) % kFromBytes) % kFromBytes;
    const bool is_alike =
        missing % kElement == 0 && part_of<Move>(piece, missing / kElement, 0).to % kToBytes == 0;
    if (!is_alike) return move_piece < Move, Move::kIsCopy ? kGroup / 2 : 1 > (piece, place);
    const std::uint32_t most = missing / kElement;
    const std::uint32_t head = most < piece.count ? most : piece.count;
    const std::uint32_t grouped = (piece.count - head) / kGroup * kGroup;
    move_groups<Move, kGroup>(part_of<Move>(piece, head, grouped), place);
    move_singly<Move>(piece, head, grouped, place);
  }
}

// The strip that has a chunk of that number.
HV_ALSO_ON_GPU inline std::uint32_t find_strip(const StripList& list, std::uint32_t chunk) {
  std::uint32_t low = 0, high = list.count - 1;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (list.strips[middle].end > chunk) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <class Move>
HV_ALSO_ON_GPU void move_strips(const StripList& list, const Place& place) {
  constexpr std::uint32_t kFrom = sizeof(typename Move::From), kTo = sizeof(typename Move::To);
  constexpr std::uint32_t kChunk = chunk_elements(kFrom, kTo);
  constexpr unsigned kGroup = 16 / (kFrom > kTo ? kFrom : kTo);
  for (std::uint32_t chunk = place.block; chunk < list.chunks; chunk += place.blocks) {
    const std::uint32_t number = find_strip(list, chunk);
    const ListedStrip& strip = list.strips[number];
    const std::uint32_t begin = number == 0 ? 0 : list.strips[number - 1].end;
    const std::uint64_t done = std::uint64_t{chunk - begin} * kChunk;
    const std::uint32_t count = chunk + 1 == strip.end ? strip.last : kChunk;
    move_piece<Move, kGroup>(
        {strip.from + done * kFrom, strip.to + done * kTo, count, list.scaling}, place);
  }
}

}  // namespace
}  // namespace hv::cuda
