// 8-bit floats: every value, and every boundary between two, against the formats' definition.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/float8.h"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/kernels.h"

namespace hv::runtime {
namespace {

struct Format {
  ElementType type;
  int mantissa_bits;
  int bias;
  int greatest;  // the bits of the greatest number; what comes behind it is an overflow
  float (*widen)(std::uint8_t bits);
  std::uint8_t (*narrow)(float value);
};
const Format kFormats[] = {
    {ElementType::kFloat8E4M3, 3, 7, 0x7e, float_from_e4m3, e4m3_from_float},
    {ElementType::kFloat8E5M2, 2, 15, 0x7b, float_from_e5m2, e5m2_from_float},
};

// As if the format went on behind its greatest number.
double magnitude_of(const Format& format, int bits) {
  const int exponent = bits >> format.mantissa_bits;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int implied = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return std::ldexp(mantissa + implied, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

double value_of(const Format& format, int bits) {
  const int magnitude = bits & 0x7f;
  double value = magnitude_of(format, magnitude);
  if (magnitude > format.greatest) value = std::numeric_limits<double>::quiet_NaN();
  if (format.type == ElementType::kFloat8E5M2 && magnitude == 0x7c) value = INFINITY;
  return bits & 0x80 ? -value : value;
}

// The bits behind the greatest number are just those of what an overflow becomes.
int nearest(const Format& format, double value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  int below = 0;
  while (below < format.greatest && magnitude_of(format, below + 1) <= std::abs(value)) ++below;
  const double middle = (magnitude_of(format, below) + magnitude_of(format, below + 1)) / 2;
  const bool is_tie = std::abs(value) == middle;
  return sign | (below + (is_tie ? below & 1 : std::abs(value) > middle));
}

// What differs from the definition; empty: nothing.
std::string mistake(const Format& format, float value) {
  for (const float one : {value, -value}) {
    const int expected = nearest(format, one), made = format.narrow(one);
    if (made != expected)
      return std::to_string(one) + " becomes " + std::to_string(made) + ", not " +
             std::to_string(expected);
  }
  return {};
}

bool is_same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

TEST_CASE("every 8-bit float is the number that its format says, and survives float32") {
  for (const Format& format : kFormats) {
    CAPTURE(element_type_name(format.type));
    for (int bits = 0; bits < 256; ++bits) {
      CAPTURE(bits);
      const float value = format.widen(static_cast<std::uint8_t>(bits));
      CHECK(is_same(value, value_of(format, bits)));
      CHECK(format.narrow(value) == (std::isnan(value) ? bits | 0x7f : bits));
    }
  }
  CHECK(float_from_e4m3(0x7e) == 448);
  CHECK(float_from_e4m3(1) == 0x1p-9f);
  CHECK(float_from_e5m2(0x7b) == 57344);
  CHECK(float_from_e5m2(1) == 0x1p-16f);
}

TEST_CASE("float32 rounds to the nearest 8-bit float, ties to even, at every boundary") {
  for (const Format& format : kFormats) {
    CAPTURE(element_type_name(format.type));
    for (int bits = 0; bits <= format.greatest; ++bits) {
      const double low = magnitude_of(format, bits), high = magnitude_of(format, bits + 1);
      for (const double number : {low, (low + high) / 2, high}) {
        const auto exact = static_cast<float>(number);
        for (const float value : {exact, std::nextafter(exact, 0.0f), std::nextafter(exact, 1e9f)})
          CHECK(mistake(format, value) == "");
      }
    }
    for (const float value : {0.0f, FLT_TRUE_MIN, FLT_MIN, FLT_MAX, INFINITY, NAN})
      CHECK(mistake(format, value) == "");
  }
}

TEST_CASE("what is too large for an 8-bit float becomes infinite, or a NaN where there is none") {
  CHECK(e4m3_from_float(464) == 0x7e);
  CHECK(e4m3_from_float(465) == 0x7f);
  CHECK(e4m3_from_float(-INFINITY) == 0xff);
  CHECK(e5m2_from_float(61439) == 0x7b);
  CHECK(e5m2_from_float(61440) == 0x7c);
  CHECK(e5m2_from_float(-INFINITY) == 0xfc);
}

TEST_CASE("random float32 round to the nearest 8-bit float") {
  std::mt19937 random(11);
  for (const Format& format : kFormats) {
    CAPTURE(element_type_name(format.type));
    for (int i = 0; i < 50'000; ++i) {
      // Most random bits would be far out of range.
      const std::uint32_t exponent = 127 - 20 + random() % 40;
      const float value = float_from_bits(exponent << 23 | (random() & 0x7fffff));
      const std::string wrong = mistake(format, value);
      if (!wrong.empty()) CHECK(wrong == "");
    }
  }
}

TEST_CASE("all forms of the kernels add and multiply every pair of 8-bit floats, and round once") {
  std::vector<std::uint8_t> a(65536), b(65536), result(65536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint8_t>(i);
    b[i] = static_cast<std::uint8_t>(i >> 8);
  }
  const void* sources[] = {a.data(), b.data()};
  for (const Format& format : kFormats)
    for (const Kernels* kernels : usable_kernels())
      for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct}) {
        INFO(kernels->name << ": " << reduction_name(reduction));
        kernels->reduce_for(format.type, reduction)(result.data(), sources, 2, a.size(), {});
        for (std::size_t i = 0; i < a.size(); ++i) {
          const double x = value_of(format, a[i]), y = value_of(format, b[i]);
          const double value = reduction == Reduction::kSum ? x + y : x * y;
          const int rounded = nearest(format, value);
          const int expected = std::isnan(value_of(format, rounded)) ? 0x7f : rounded;
          if (result[i] != expected) FAIL_CHECK(x << " and " << y << " give " << int{result[i]});
        }
      }
}

TEST_CASE("8-bit sums are rounded once, at the end") {
  // 16 + 1 is no e4m3, 8 + 1 no e5m2: rounding after each step would lose both ones.
  const auto sum = [](ElementType type, std::uint8_t large, std::uint8_t one) {
    const void* sources[] = {&large, &one, &one};
    std::uint8_t result = 0;
    best_kernels().reduce_for(type, Reduction::kSum)(&result, sources, 3, 1, {});
    return result;
  };
  CHECK(float_from_e4m3(sum(ElementType::kFloat8E4M3, e4m3_from_float(16), e4m3_from_float(1))) ==
        18);
  CHECK(float_from_e5m2(sum(ElementType::kFloat8E5M2, e5m2_from_float(8), e5m2_from_float(1))) ==
        10);
}

}  // namespace hv::runtime
