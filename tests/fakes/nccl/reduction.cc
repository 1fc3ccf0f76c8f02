// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/reduction.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/backend/nccl/nccl_abi.h"
#include "runtime/device/float8.h"
#include "runtime/device/half.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

// How elements lie in memory, and as what they are computed.
template <class Value>
struct Plain {
  using Number = Value;
  static constexpr std::size_t kBytes = sizeof(Value);
  static Number read(const std::byte* at) {
    Number value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static void write(std::byte* at, Number value) { std::memcpy(at, &value, sizeof value); }
};

template <class Bits, float (*kWiden)(Bits), Bits (*kNarrow)(float)>
struct Narrow {
  using Number = float;
  static constexpr std::size_t kBytes = sizeof(Bits);
  static Number read(const std::byte* at) { return kWiden(Plain<Bits>::read(at)); }
  static void write(std::byte* at, Number value) { Plain<Bits>::write(at, kNarrow(value)); }
};

using Half = Narrow<std::uint16_t, &runtime::float_from_half, &runtime::half_from_float>;
using Bfloat = Narrow<std::uint16_t, &runtime::float_from_bfloat, &runtime::bfloat_from_float>;
using E4m3 = Narrow<std::uint8_t, &runtime::float_from_e4m3, &runtime::e4m3_from_float>;
using E5m2 = Narrow<std::uint8_t, &runtime::float_from_e5m2, &runtime::e5m2_from_float>;

// Whole numbers wrap.
template <class Number>
struct Wrapped {
  using Type = std::make_unsigned_t<Number>;
};
template <>
struct Wrapped<float> {
  using Type = float;
};
template <>
struct Wrapped<double> {
  using Type = double;
};

template <class Number>
Number combine(Number left, Number right, int kind) {
  using Type = typename Wrapped<Number>::Type;
  switch (kind) {
    case nccl::kProduct:
      return static_cast<Number>(static_cast<Type>(left) * static_cast<Type>(right));
    case nccl::kMax:
      return std::max(left, right);
    case nccl::kMin:
      return std::min(left, right);
    default:
      return static_cast<Number>(static_cast<Type>(left) + static_cast<Type>(right));
  }
}

template <class Codec>
void reduce_as(const std::vector<const std::byte*>& parts, std::byte* to, std::size_t count,
               const Reduction& reduction) {
  using Number = typename Codec::Number;
  const Number scalar = Codec::read(reduction.scalar.data());
  const auto part = [&](std::size_t rank, std::size_t element) {
    const Number own = Codec::read(parts[rank] + element * Codec::kBytes);
    return reduction.kind == kPremultipliedSum ? combine(own, scalar, nccl::kProduct) : own;
  };
  for (std::size_t element = 0; element < count; ++element) {
    Number value = part(0, element);
    for (std::size_t rank = 1; rank < parts.size(); ++rank)
      value = combine(value, part(rank, element), reduction.kind);
    if (reduction.kind == nccl::kAverage)
      value = static_cast<Number>(value / static_cast<Number>(parts.size()));
    Codec::write(to + element * Codec::kBytes, value);
  }
}

struct ElementType {
  std::size_t bytes;
  void (*reduce)(const std::vector<const std::byte*>& parts, std::byte* to, std::size_t count,
                 const Reduction& reduction);
};

// By NCCL's numbers.
constexpr ElementType kTypes[] = {{1, &reduce_as<Plain<std::int8_t>>},
                                  {1, &reduce_as<Plain<std::uint8_t>>},
                                  {4, &reduce_as<Plain<std::int32_t>>},
                                  {4, &reduce_as<Plain<std::uint32_t>>},
                                  {8, &reduce_as<Plain<std::int64_t>>},
                                  {8, &reduce_as<Plain<std::uint64_t>>},
                                  {2, &reduce_as<Half>},
                                  {4, &reduce_as<Plain<float>>},
                                  {8, &reduce_as<Plain<double>>},
                                  {2, &reduce_as<Bfloat>},
                                  {1, &reduce_as<E4m3>},
                                  {1, &reduce_as<E5m2>}};

bool is_type(int type) { return type >= 0 && type < static_cast<int>(std::size(kTypes)); }

}  // namespace

std::size_t element_bytes(int type) { return is_type(type) ? kTypes[type].bytes : 0; }

bool can_reduce(int type) { return is_type(type); }

void reduce(const std::vector<const std::byte*>& parts, std::byte* to, std::size_t count, int type,
            const Reduction& reduction) {
  if (!can_reduce(type)) refuse("a reduction of a type that has none");
  kTypes[type].reduce(parts, to, count, reduction);
}

}  // namespace hv::fake
