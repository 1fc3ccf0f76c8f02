// The kernels: every form gives the same bits, and those are the documented ones.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/half.h"
#include "runtime/device/kernels.h"
#include "tests/ranks/drawn.h"
#include "tests/unit/device/random_tensors.h"

namespace hv::runtime {
namespace {

const std::vector<Reduction> kReductions = {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                            Reduction::kMax, Reduction::kProduct};

std::string difference(ElementType type, const Bytes& a, const Bytes& b) {
  for (std::size_t at = 0; at < a.size(); at += element_size(type)) {
    if (std::memcmp(&a[at], &b[at], element_size(type)) == 0) continue;
    return std::string(element_type_name(type)) + " differs at " +
           std::to_string(at / element_size(type));
  }
  return {};
}

struct Case {
  ElementType type;
  Reduction reduction;
  int sources;
  std::size_t count;
  Finish finish;
};

// Sources at odd offsets, so that nothing is aligned.
Bytes reduce_with(const Kernels& kernels, const Case& c) {
  std::vector<Bytes> inputs;
  std::vector<const void*> sources;
  for (int s = 0; s < c.sources; ++s) {
    Bytes input(static_cast<std::size_t>(s) * element_size(c.type));
    const Bytes values = random_tensor(c.type, c.count, static_cast<std::uint64_t>(s) + c.count);
    input.insert(input.end(), values.begin(), values.end());
    inputs.push_back(std::move(input));
  }
  for (int s = 0; s < c.sources; ++s)
    sources.push_back(inputs[static_cast<std::size_t>(s)].data() +
                      static_cast<std::size_t>(s) * element_size(c.type));
  Bytes result(c.count * element_size(c.type));
  kernels.reduce_for(c.type, c.reduction)(result.data(), sources.data(), c.sources, c.count,
                                          c.finish);
  return result;
}

Bytes step_with(const Kernels& kernels, const Case& c, bool streamed, std::size_t shift) {
  const std::size_t size = c.count * element_size(c.type);
  std::vector<Bytes> inputs;
  std::vector<const void*> sources;
  for (int s = 0; s < c.sources; ++s)
    inputs.push_back(random_tensor(c.type, c.count, static_cast<std::uint64_t>(s) + c.count));
  for (const Bytes& input : inputs) sources.push_back(input.data());
  Bytes result(size + shift);
  ReduceStep step;
  step.destination = result.data() + shift;
  step.sources = sources.data();
  step.source_count = c.sources;
  step.count = c.count;
  step.finish = c.finish;
  step.is_streamed = streamed;
  kernels.reduce_step_for(c.type, c.reduction)(step);
  return Bytes(result.begin() + static_cast<std::ptrdiff_t>(shift), result.end());
}

// Shorter than a wide step; with wide and narrow ones and a rest. Emulated: no long ones.
std::vector<std::size_t> counts() {
  return std::getenv("HVRUN_TEST_EMULATED") ? std::vector<std::size_t>{7, 130}
                                            : std::vector<std::size_t>{1, 7, 33, 1000, 5003};
}

template <typename Visit>
void for_each_case(Visit&& visit) {
  const std::vector<int> source_counts = {1, 2, 3, 5};
  const std::vector<Finish> finishes = {{}, {0.5, 1}, {1, 3}};
  for (const auto& [type, reduction, sources, count, finish] :
       drawn_product(element_types(), kReductions, source_counts, counts(), finishes))
    visit(Case{type, reduction, sources, count, finish});
}

template <typename T>
std::vector<T> reduce_values(ElementType type, Reduction reduction,
                             const std::vector<std::vector<T>>& inputs, Finish finish = {}) {
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<T> result(inputs[0].size());
  best_kernels().reduce_for(type, reduction)(
      result.data(), sources.data(), static_cast<int>(inputs.size()), result.size(), finish);
  return result;
}

}  // namespace

TEST_CASE("all forms of the kernels reduce to the same bits") {
  for (const Kernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    for_each_case([&](const Case& c) {
      const std::string wrong =
          difference(c.type, reduce_with(portable_kernels(), c), reduce_with(*kernels, c));
      CHECK_MESSAGE(wrong.empty(), wrong << " in " << reduction_name(c.reduction) << " of "
                                         << c.sources << " x " << c.count);
    });
  }
}

// Folded where the sources lie: the result goes into every one of them, or to fresh places.
std::vector<Bytes> step_to_all(const Kernels& kernels, const Case& c, bool in_place,
                               std::size_t shift) {
  const std::size_t size = c.count * element_size(c.type);
  std::vector<Bytes> inputs, results;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (int s = 0; s < c.sources; ++s) {
    inputs.emplace_back(shift * static_cast<std::size_t>(s + 1));
    const Bytes values = random_tensor(c.type, c.count, static_cast<std::uint64_t>(s) + c.count);
    inputs.back().insert(inputs.back().end(), values.begin(), values.end());
  }
  results = in_place ? std::vector<Bytes>{} : inputs;
  for (Bytes& input : inputs) sources.push_back(input.data() + input.size() - size);
  for (Bytes& target : in_place ? inputs : results)
    targets.push_back(target.data() + target.size() - size);
  ReduceStep step;
  step.destination = targets[0];
  step.copies = targets.data() + 1;
  step.copy_count = c.sources - 1;
  step.sources = sources.data();
  step.source_count = c.sources;
  step.count = c.count;
  step.finish = c.finish;
  step.is_streamed = !in_place && c.count % 2 == 0;
  kernels.reduce_step_for(c.type, c.reduction)(step);
  std::vector<Bytes> reduced;
  for (const void* target : targets) {
    const auto* from = static_cast<const std::byte*>(target);
    reduced.emplace_back(from, from + size);
  }
  return reduced;
}

TEST_CASE("a step that stores its result in several places stores the same in each") {
  for (const Kernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    for_each_case([&](const Case& c) {
      const Bytes expected = reduce_with(portable_kernels(), c);
      for (const bool in_place : {true, false})
        for (const std::size_t shift : {std::size_t{0}, element_size(c.type), std::size_t{3}})
          for (const Bytes& stored : step_to_all(*kernels, c, in_place, shift)) {
            const std::string wrong = difference(c.type, expected, stored);
            CHECK_MESSAGE(wrong.empty(), wrong << " in " << reduction_name(c.reduction) << " of "
                                               << c.sources << " x " << c.count);
          }
    });
  }
}

// Zeros, infinities, NaNs and the least, the largest and some middling denormals, between random
// bits.
template <typename T, typename Bits>
void sow(Bytes* tensor, std::initializer_list<Bits> specials, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at + sizeof(T) <= tensor->size(); at += sizeof(T)) {
    if (random() % 3 != 0) continue;
    Bits bits = *(specials.begin() + random() % specials.size());
    if (random() % 2 == 0) bits = static_cast<Bits>(bits | Bits{1} << (8 * sizeof(Bits) - 1));
    std::memcpy(&(*tensor)[at], &bits, sizeof bits);
  }
}

Bytes tensor_with_specials(ElementType type, std::size_t count, std::uint64_t seed) {
  Bytes tensor = random_tensor(type, count, seed);
  if (type == ElementType::kFloat16)
    sow<std::uint16_t, std::uint16_t>(
        &tensor, {0, 1, 0x3ff, 0x155, 0x400, 0x7c00, 0x7c01, 0x7e00, 0x7bff}, seed);
  if (type == ElementType::kBfloat16)
    sow<std::uint16_t, std::uint16_t>(
        &tensor, {0, 1, 0x7f, 0x2a, 0x80, 0x7f80, 0x7f81, 0x7fc0, 0x7f7f}, seed);
  if (type == ElementType::kFloat8E4M3)
    sow<std::uint8_t, std::uint8_t>(&tensor, {0, 1, 3, 7, 8, 0x7e, 0x7f}, seed);
  if (type == ElementType::kFloat8E5M2)
    sow<std::uint8_t, std::uint8_t>(&tensor, {0, 1, 3, 4, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f}, seed);
  if (type == ElementType::kFloat32)
    sow<float, std::uint32_t>(
        &tensor,
        {0, 1, 0x7fffff, 0x2aaaaa, 0x800000, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7f7fffff}, seed);
  if (type == ElementType::kFloat64)
    sow<double, std::uint64_t>(
        &tensor,
        {0, 1, 0xfffffffffffff, 0x5555555555555, 0x10000000000000, 0x7ff0000000000000,
         0x7ff0000000000001, 0x7ff8000000000000, 0x7fefffffffffffff},
        seed);
  return tensor;
}

TEST_CASE("all forms agree at every length and misalignment, also of NaNs and denormals") {
  std::vector<std::size_t> lengths(141);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const auto& [type, reduction, count] :
       drawn_product(element_types(), kReductions, lengths)) {
    const std::size_t element = element_size(type), size = count * element;
    // Pointers need not even be multiples of an element's size.
    const std::size_t shift = count * 7 % 65;
    std::vector<Bytes> inputs;
    std::vector<const void*> sources;
    for (const std::uint64_t s : {1, 2, 3}) {
      Bytes input(shift * s % 64);
      const Bytes values = tensor_with_specials(type, count, s * 1000 + count);
      input.insert(input.end(), values.begin(), values.end());
      inputs.push_back(std::move(input));
      sources.push_back(inputs.back().data() + (inputs.back().size() - size));
    }
    const int source_count = 2 + static_cast<int>(count % 2);
    const auto reduced = [&](const Kernels& kernels, bool steps) {
      Bytes result(shift + size + 64, std::byte{0x5a});
      ReduceStep step;
      step.destination = result.data() + shift;
      step.sources = sources.data();
      step.source_count = source_count;
      step.count = count;
      step.is_streamed = count % 5 < 3;
      if (steps) {
        kernels.reduce_step_for(type, reduction)(step);
      } else {
        kernels.reduce_for(type, reduction)(step.destination, sources.data(), source_count, count,
                                            {});
      }
      return result;
    };
    const Bytes expected = reduced(portable_kernels(), false);
    for (const Kernels* kernels : usable_kernels())
      for (const bool steps : {false, true}) {
        const bool is_same = reduced(*kernels, steps) == expected;
        CHECK_MESSAGE(is_same, kernels->name << ": " << reduction_name(reduction) << " of " << count
                                             << " " << element_type_name(type));
      }
  }
}

TEST_CASE("the forms that this processor runs are listed best first, and found by name") {
  REQUIRE_FALSE(usable_kernels().empty());
  CHECK(usable_kernels().back() == &portable_kernels());
  CHECK(usable_kernels().front() == &best_kernels());
  for (const Kernels* kernels : usable_kernels()) CHECK(find_kernels(kernels->name) == kernels);
  CHECK(find_kernels("mmx") == nullptr);
  std::string names;
  for (const Kernels* kernels : usable_kernels()) names += std::string(" ") + kernels->name;
  MESSAGE("kernels here:" << names);
}

TEST_CASE("a step gives the bits of the plain reduction, streamed or not") {
  for (const Kernels* kernels : usable_kernels()) {
    for_each_case([&](const Case& c) {
      for (const bool streamed : {false, true}) {
        Bytes plain(c.count * element_size(c.type));
        const Bytes step = step_with(*kernels, c, streamed, element_size(c.type));
        std::vector<Bytes> inputs;
        std::vector<const void*> sources;
        for (int s = 0; s < c.sources; ++s)
          inputs.push_back(random_tensor(c.type, c.count, static_cast<std::uint64_t>(s) + c.count));
        for (const Bytes& input : inputs) sources.push_back(input.data());
        kernels->reduce_for(c.type, c.reduction)(plain.data(), sources.data(), c.sources, c.count,
                                                 c.finish);
        CHECK(difference(c.type, plain, step).empty());
      }
    });
  }
}

TEST_CASE("a step folds as many sources as a host may have ranks, in their order") {
  for (const Kernels* kernels : usable_kernels()) {
    for (const ElementType type : element_types())
      for (const int sources : {65, 200})
        for (const bool streamed : {false, true}) {
          const Case c{type, Reduction::kSum, sources, 130, {}};
          const Bytes step = step_with(*kernels, c, streamed, 0);
          std::vector<Bytes> inputs;
          for (int s = 0; s < sources; ++s)
            inputs.push_back(
                random_tensor(c.type, c.count, static_cast<std::uint64_t>(s) + c.count));
          std::vector<const void*> pointers;
          for (const Bytes& input : inputs) pointers.push_back(input.data());
          Bytes plain(step.size());
          kernels->reduce_for(c.type, c.reduction)(plain.data(), pointers.data(), sources, c.count,
                                                   c.finish);
          CHECK(difference(c.type, plain, step).empty());
        }
  }
}

TEST_CASE(
    "reducing into the first source or into the last gives what a separate destination gives") {
  for (const ElementType type : element_types()) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{2}}) {
      std::vector<Bytes> inputs;
      for (std::uint64_t s = 0; s < 3; ++s) inputs.push_back(random_tensor(type, 1001, s));
      const std::vector<const void*> sources = {inputs[0].data(), inputs[1].data(),
                                                inputs[2].data()};
      Bytes apart(inputs[0].size());
      const ReduceKernel kernel = best_kernels().reduce_for(type, Reduction::kSum);
      kernel(apart.data(), sources.data(), 3, 1001, {});
      kernel(inputs[place].data(), sources.data(), 3, 1001, {});
      CHECK(difference(type, apart, inputs[place]).empty());
    }
  }
}

TEST_CASE("halves survive the way to float32 and back, and all forms agree on every one") {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const std::uint16_t half : halves) {
    const bool is_nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0;
    CHECK(half_from_float(float_from_half(half)) == (is_nan ? half | 0x200 : half));
  }
  const void* source = halves.data();
  for (const Kernels* kernels : usable_kernels()) {
    std::vector<std::uint16_t> same(halves.size());
    kernels->reduce_for(ElementType::kFloat16, Reduction::kSum)(same.data(), &source, 1,
                                                                halves.size(), {});
    for (std::size_t i = 0; i < halves.size(); ++i)
      CHECK(same[i] == (std::isnan(float_from_half(halves[i])) ? 0x7e00 : halves[i]));
  }
}

TEST_CASE("float32 rounds to half as the processor does, ties to even, overflow to infinity") {
  CHECK(half_from_float(65519.0f) == 0x7bff);
  CHECK(half_from_float(65520.0f) == 0x7c00);
  CHECK(half_from_float(0x1p-24f) == 1);
  CHECK(half_from_float(0x1p-25f) == 0);    // a tie, to even
  CHECK(half_from_float(0x1.8p-24f) == 2);  // a tie, to even
  CHECK(half_from_float(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(half_from_float(1.0f + 3 * 0x1p-11f) == 0x3c02);
  CHECK(half_from_float(-0.0f) == 0x8000);
  CHECK(bfloat_from_float(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(bfloat_from_float(1.0f + 3 * 0x1p-8f) == 0x3f82);
  CHECK(std::isnan(float_from_bfloat(bfloat_from_float(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("random float32 become the same halves in all forms") {
  std::mt19937 random(5);
  std::vector<std::uint16_t> a(4096), b(4096), first(4096), second(4096);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>(random());
    b[i] = static_cast<std::uint16_t>(random());
  }
  const void* sources[] = {a.data(), b.data()};
  for (const Kernels* kernels : usable_kernels())
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct}) {
      portable_kernels().reduce_for(ElementType::kFloat16, reduction)(first.data(), sources, 2,
                                                                      4096, {});
      kernels->reduce_for(ElementType::kFloat16, reduction)(second.data(), sources, 2, 4096, {});
      CHECK(first == second);
    }
}

template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Of each pair of values, in vectors and in the ragged end, in both orders: the same bits.
template <typename T>
void check_orders(ElementType type, const std::vector<T>& values) {
  std::vector<T> a, b;
  for (const T& first : values)
    for (const T& second : values) {
      a.push_back(first);
      b.push_back(second);
    }
  for (const Kernels* kernels : usable_kernels()) {
    for (const Reduction reduction : kReductions)
      for (const Finish finish : {Finish{}, Finish{0.0, 1}, Finish{1, 3}}) {
        const void* orders[2][2] = {{a.data(), b.data()}, {b.data(), a.data()}};
        std::vector<T> results[2] = {a, a}, steps[2] = {a, a};
        for (int order = 0; order < 2; ++order) {
          kernels->reduce_for(type, reduction)(results[order].data(), orders[order], 2, a.size(),
                                               finish);
          ReduceStep step;
          step.destination = steps[order].data();
          step.sources = orders[order];
          step.source_count = 2;
          step.count = a.size();
          step.finish = finish;
          kernels->reduce_step_for(type, reduction)(step);
        }
        const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
          return std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
        };
        CHECK(same(results[0], results[1]));
        CHECK(same(steps[0], steps[1]));
        CHECK(same(results[0], steps[0]));
      }
  }
}

TEST_CASE("NaNs, zeros and infinities that meet give bits that do not depend on who came first") {
  check_orders<std::uint16_t>(ElementType::kFloat16, {0x7e00, 0xfe00, 0x7e01, 0xfdff, 0x7c01,
                                                      0x7c00, 0xfc00, 0, 0x8000, 0x3c00, 0xbc00});
  check_orders<std::uint16_t>(ElementType::kBfloat16, {0x7fc0, 0xffc0, 0x7fc1, 0xff81, 0x7f80,
                                                       0xff80, 0, 0x8000, 0x3f80, 0xbf80});
  check_orders<std::uint8_t>(ElementType::kFloat8E4M3,
                             {0x7f, 0xff, 0x7e, 0xfe, 0, 0x80, 0x38, 0xb8});
  check_orders<std::uint8_t>(ElementType::kFloat8E5M2,
                             {0x7d, 0xfd, 0x7e, 0xfe, 0x7f, 0xff, 0x7c, 0xfc, 0, 0x80, 0x3c, 0xbc});
  std::vector<float> singles;
  for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc12345u, 0xff800001u, 0x7f800000u,
                                   0xff800000u, 0u, 0x80000000u, 0x3f800000u, 0xbf800000u})
    singles.push_back(from_bits<float>(bits));
  check_orders(ElementType::kFloat32, singles);
  std::vector<double> doubles;
  for (const std::uint64_t bits :
       {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff8000000012345u, 0xfff0000000000001u,
        0x7ff0000000000000u, 0xfff0000000000000u, std::uint64_t{0}, 0x8000000000000000u,
        0x3ff0000000000000u, 0xbff0000000000000u})
    doubles.push_back(from_bits<double>(bits));
  check_orders(ElementType::kFloat64, doubles);
}

TEST_CASE("minimum and maximum pass a NaN on, and take -0 for less than +0") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, 1, 0.0f, -0.0f, 2}, b = {1, nan, -0.0f, 0.0f, 3};
  const auto least = reduce_values<float>(ElementType::kFloat32, Reduction::kMin, {a, b});
  const auto most = reduce_values<float>(ElementType::kFloat32, Reduction::kMax, {a, b});
  for (const auto& result : {least, most}) {
    CHECK(std::isnan(result[0]));
    CHECK(std::isnan(result[1]));
  }
  CHECK((std::signbit(least[2]) && std::signbit(least[3]) && least[4] == 2));
  CHECK((!std::signbit(most[2]) && !std::signbit(most[3]) && most[4] == 3));
}

TEST_CASE("16-bit sums are rounded once, at the end") {
  // 2048 + 1 is no half; 2048 + 1 + 1 is. Rounding after each step would lose both ones.
  const std::vector<std::uint16_t> big = {half_from_float(2048)}, one = {half_from_float(1)};
  CHECK(float_from_half(reduce_values<std::uint16_t>(ElementType::kFloat16, Reduction::kSum,
                                                     {big, one, one})[0]) == 2050);
  const std::vector<std::uint16_t> large = {bfloat_from_float(256)}, unit = {bfloat_from_float(1)};
  CHECK(float_from_bfloat(reduce_values<std::uint16_t>(ElementType::kBfloat16, Reduction::kSum,
                                                       {large, unit, unit})[0]) == 258);
}

TEST_CASE("integer sums and products wrap, averages truncate towards zero") {
  using Ints = std::vector<std::int32_t>;
  CHECK(reduce_values<std::int32_t>(ElementType::kInt32, Reduction::kSum,
                                    {Ints{INT32_MAX}, Ints{1}})[0] == INT32_MIN);
  CHECK(reduce_values<std::int32_t>(ElementType::kInt32, Reduction::kProduct,
                                    {Ints{1 << 20}, Ints{1 << 12}})[0] == 0);
  CHECK(reduce_values<std::int32_t>(ElementType::kInt32, Reduction::kSum,
                                    {Ints{-3, 3, 7}, Ints{-4, 4, 0}}, {1, 2}) == Ints{-3, 3, 3});
  const std::vector<std::int8_t> big = {100};
  CHECK(reduce_values<std::int8_t>(ElementType::kInt8, Reduction::kSum, {big, big})[0] == -56);
  const std::vector<std::int64_t> huge = {INT64_MAX};
  CHECK(reduce_values<std::int64_t>(ElementType::kInt64, Reduction::kMax, {huge}, {2, 1})[0] ==
        INT64_MAX);
}

TEST_CASE("on bool, sum and max are or, product and min are and") {
  using Bools = std::vector<std::uint8_t>;
  const std::vector<Bools> inputs = {{0, 0, 1, 1}, {0, 1, 0, 1}};
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax})
    CHECK(reduce_values<std::uint8_t>(ElementType::kBool, reduction, inputs) == Bools{0, 1, 1, 1});
  for (const Reduction reduction : {Reduction::kProduct, Reduction::kMin})
    CHECK(reduce_values<std::uint8_t>(ElementType::kBool, reduction, inputs) == Bools{0, 0, 0, 1});
}

TEST_CASE("averaging equal floats gives that float back, for any number of ranks") {
  for (const int ranks : {2, 3, 5, 7}) {
    const std::vector<std::vector<float>> inputs(static_cast<std::size_t>(ranks),
                                                 {0.1f, 1e-30f, -3.25f});
    const auto result = reduce_values<float>(ElementType::kFloat32, Reduction::kSum, inputs,
                                             {1, static_cast<double>(ranks)});
    CHECK(result[2] == -3.25f);
    CHECK(std::abs(result[0] - 0.1f) <= 1e-8f);
  }
}

TEST_CASE("scaling rounds to the type, in place or not") {
  std::vector<float> values = {1, 2, 3};
  best_kernels().scale[static_cast<int>(ElementType::kFloat32)](values.data(), values.data(), 3,
                                                                0.5);
  CHECK(values == std::vector<float>{0.5f, 1, 1.5f});
  std::vector<std::int16_t> numbers = {3, -3, 100}, scaled(3);
  best_kernels().scale[static_cast<int>(ElementType::kInt16)](scaled.data(), numbers.data(), 3,
                                                              0.5);
  CHECK(scaled == std::vector<std::int16_t>{1, -1, 50});
}

TEST_CASE("copies are whole at any offset and length") {
  const Bytes from = random_bytes(5000, 3);
  for (const Kernels* kernels : usable_kernels()) {
    for (const std::size_t offset : {0, 1, 31, 63}) {
      for (const std::size_t size : {0, 1, 63, 64, 127, 129, 4000}) {
        for (const CopyKernel copy : {kernels->copy, kernels->stream_copy, kernels->vector_copy}) {
          if (copy == nullptr) continue;
          Bytes to(5000, std::byte{7});
          copy(to.data() + offset, from.data() + 3, size);
          CHECK(std::memcmp(to.data() + offset, from.data() + 3, size) == 0);
          CHECK(to[offset + size] == std::byte{7});
        }
      }
    }
  }
}

}  // namespace hv::runtime
