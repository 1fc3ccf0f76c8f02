// What Adasum and the wire ask of the kernels: dot products, blends, packing. Every form gives the
// same bits. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/device/half.h"
#include "runtime/device/kernels.h"
#include "tests/unit/device/random_tensors.h"

namespace hv::runtime {
namespace {

std::vector<ElementType> floating_types() {
  std::vector<ElementType> all = element_types();
  std::erase_if(all, [](ElementType type) { return !is_floating(type); });
  return all;
}

DotSums dots_with(const Kernels& kernels, ElementType type, const Bytes& a, const Bytes& b,
                  std::size_t first) {
  const std::size_t size = element_size(type), count = a.size() / size;
  DotSums sums;
  const DotKernel dot = kernels.dot[static_cast<int>(type)];
  if (first > 0) dot(a.data(), b.data(), first, &sums);
  dot(a.data() + first * size, b.data() + first * size, count - first, &sums);
  return sums;
}

// Of a and b, or, in place, into a.
Bytes blend_with(const Kernels& kernels, ElementType type, Bytes a, const Bytes& b, bool in_place) {
  Bytes apart(a.size());
  Bytes& target = in_place ? a : apart;
  kernels.blend[static_cast<int>(type)](target.data(), a.data(), b.data(),
                                        a.size() / element_size(type), 0.3, -0.7);
  return target;
}

bool are_same(const DotSums& a, const DotSums& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

Bytes pack_with(const Kernels& kernels, ElementType type, Compression compression,
                const Bytes& values, double factor) {
  const std::size_t count = values.size() / element_size(type);
  Bytes packed(2 * count);
  kernels.pack[static_cast<int>(type)][static_cast<int>(compression)](packed.data(), values.data(),
                                                                      count, factor);
  return packed;
}

Bytes unpack_with(const Kernels& kernels, ElementType type, Compression compression,
                  const Bytes& packed) {
  const std::size_t count = packed.size() / 2;
  Bytes values(count * element_size(type));
  kernels.unpack[static_cast<int>(type)][static_cast<int>(compression)](values.data(),
                                                                        packed.data(), count);
  return values;
}

}  // namespace

TEST_CASE("dot products and blends have the same bits in all forms, however they are cut") {
  for (const Kernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    for (const ElementType type : floating_types()) {
      for (const std::size_t count : {1, 7, 8, 513, 5003}) {
        CAPTURE(element_type_name(type));
        CAPTURE(count);
        Bytes a = random_tensor(type, count, 1), b = random_tensor(type, count, 2);
        // No NaNs here: which payload survives a sum is no promise of the dot products.
        for (Bytes* bytes : {&a, &b})
          for (std::size_t at = element_size(type) - 1; at < bytes->size();
               at += element_size(type))
            (*bytes)[at] &= std::byte{0xbb};
        const DotSums whole = dots_with(portable_kernels(), type, a, b, 0);
        CHECK(are_same(whole, dots_with(*kernels, type, a, b, 0)));
        CHECK(are_same(whole, dots_with(*kernels, type, a, b, count / 2 / kDotLanes * kDotLanes)));
        const Bytes blended = blend_with(portable_kernels(), type, a, b, false);
        for (const bool in_place : {false, true})
          CHECK(blended == blend_with(*kernels, type, a, b, in_place));
      }
    }
  }
}

TEST_CASE("dot products and blends have the same bits at any address") {
  for (const ElementType type : floating_types()) {
    const std::size_t count = 1203, bytes = count * element_size(type),
                      row = static_cast<std::size_t>(type);
    const Bytes a(bytes + 1, std::byte{0x31}), b(bytes + 1, std::byte{0x32});  // alike everywhere
    Bytes even(bytes), odd(bytes + 1);
    for (const Kernels* kernels : usable_kernels()) {
      DotSums even_sums, odd_sums;
      kernels->dot[row](a.data(), b.data(), count, &even_sums);
      kernels->dot[row](a.data() + 1, b.data() + 1, count, &odd_sums);
      CHECK(are_same(even_sums, odd_sums));
      kernels->blend[row](even.data(), a.data(), b.data(), count, 0.3, -0.7);
      kernels->blend[row](odd.data() + 1, a.data() + 1, b.data() + 1, count, 0.3, -0.7);
      CHECK(std::memcmp(odd.data() + 1, even.data(), bytes) == 0);
    }
  }
}

TEST_CASE("dot products are summed in float64, and a blend rounds once") {
  const std::vector<float> a = {1e10f, 1.0f, 2.0f}, b = {1e10f, 3.0f, 0.5f};
  DotSums sums;
  best_kernels().dot[static_cast<int>(ElementType::kFloat32)](a.data(), b.data(), 3, &sums);
  CHECK(sums.ab[0] + sums.ab[1] + sums.ab[2] == 1e20 + 3.0 + 1.0);
  CHECK(sums.ab[1] == 3.0);
  CHECK(sums.aa[2] == 4.0);
  CHECK(sums.bb[2] == 0.25);
  std::vector<float> blended(3);
  best_kernels().blend[static_cast<int>(ElementType::kFloat32)](blended.data(), a.data(), b.data(),
                                                                3, 0.5, 2.0);
  CHECK(blended == std::vector<float>{2.5e10f, 6.5f, 2.0f});
}

TEST_CASE("packing for the wire has the same bits in all forms") {
  for (const Kernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
      for (const Compression compression : {Compression::kFloat16, Compression::kBfloat16}) {
        for (const double factor : {1.0, 1.0 / 3}) {
          const Bytes values = random_tensor(type, 5003, 7);
          const Bytes packed = pack_with(portable_kernels(), type, compression, values, factor);
          CHECK(packed == pack_with(*kernels, type, compression, values, factor));
          CHECK(unpack_with(portable_kernels(), type, compression, packed) ==
                unpack_with(*kernels, type, compression, packed));
        }
      }
    }
  }
}

TEST_CASE("packing for the wire scales, then rounds") {
  const float given[3] = {1.0f, 3e5f, -0.1f};
  std::uint16_t half[3];
  float back[3];
  const int row = static_cast<int>(ElementType::kFloat32);
  best_kernels().pack[row][static_cast<int>(Compression::kFloat16)](half, given, 3, 0.5);
  best_kernels().unpack[row][static_cast<int>(Compression::kFloat16)](back, half, 3);
  CHECK(back[0] == 0.5f);
  CHECK(std::isinf(back[1]));
  CHECK(back[2] == float_from_half(half_from_float(-0.05f)));
}

TEST_CASE("packing for the wire makes every NaN the same one") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float given[3] = {-std::numeric_limits<float>::quiet_NaN(), infinity, 1.0f};
  const int row = static_cast<int>(ElementType::kFloat32);
  for (const Kernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    std::uint16_t half[3], bfloat[3];
    kernels->pack[row][static_cast<int>(Compression::kFloat16)](half, given, 3, 0);
    kernels->pack[row][static_cast<int>(Compression::kBfloat16)](bfloat, given, 3, 0);
    CHECK(std::vector<std::uint16_t>(half, half + 3) ==
          std::vector<std::uint16_t>{0x7e00, 0x7e00, 0});
    CHECK(std::vector<std::uint16_t>(bfloat, bfloat + 3) ==
          std::vector<std::uint16_t>{0x7fc0, 0x7fc0, 0});
  }
}

}  // namespace hv::runtime
