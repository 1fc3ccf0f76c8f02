// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/device/float8.h"
#include "runtime/device/half.h"

namespace hv::runtime {
namespace {

// Made before there are threads: no sanitizer sees how a static of a function here begins.
const std::vector<ElementType> kAllTypes = {
#ifdef HVRUN_TYPES_OF_EACH_SIZE
    ElementType::kUint8, ElementType::kBfloat16, ElementType::kFloat32, ElementType::kInt64};
#else
    ElementType::kUint8,    ElementType::kInt8,       ElementType::kInt16,
    ElementType::kInt32,    ElementType::kInt64,      ElementType::kFloat16,
    ElementType::kBfloat16, ElementType::kFloat32,    ElementType::kFloat64,
    ElementType::kBool,     ElementType::kFloat8E4M3, ElementType::kFloat8E5M2};
#endif
const std::vector<Reduction> kAllReductions = {Reduction::kSum, Reduction::kMin, Reduction::kMax,
                                               Reduction::kProduct};

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

double read_number(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kUint8:
      return read<std::uint8_t>(at);
    case ElementType::kInt8:
      return read<std::int8_t>(at);
    case ElementType::kInt16:
      return read<std::int16_t>(at);
    case ElementType::kInt32:
      return read<std::int32_t>(at);
    case ElementType::kInt64:
      return static_cast<double>(read<std::int64_t>(at));
    case ElementType::kFloat16:
      return float_from_half(read<std::uint16_t>(at));
    case ElementType::kBfloat16:
      return float_from_bfloat(read<std::uint16_t>(at));
    case ElementType::kFloat32:
      return read<float>(at);
    case ElementType::kFloat64:
      return read<double>(at);
    case ElementType::kBool:
      return read<std::uint8_t>(at) != 0;
    case ElementType::kFloat8E4M3:
      return float_from_e4m3(read<std::uint8_t>(at));
    case ElementType::kFloat8E5M2:
      return float_from_e5m2(read<std::uint8_t>(at));
  }
  return 0;
}

std::int64_t read_integer(ElementType type, const std::byte* at) {
  return type == ElementType::kInt64 ? read<std::int64_t>(at)
                                     : static_cast<std::int64_t>(read_number(type, at));
}

void write_integer(ElementType type, std::byte* at, std::int64_t value) {
  switch (element_size(type)) {
    case 1:
      return write(at, static_cast<std::uint8_t>(value));
    case 2:
      return write(at, static_cast<std::uint16_t>(value));
    case 4:
      return write(at, static_cast<std::uint32_t>(value));
    default:
      return write(at, value);
  }
}

void write_number(ElementType type, std::byte* at, double value) {
  if (type == ElementType::kFloat16) return write(at, half_from_float(static_cast<float>(value)));
  if (type == ElementType::kBfloat16)
    return write(at, bfloat_from_float(static_cast<float>(value)));
  if (type == ElementType::kFloat8E4M3) {
    const std::uint8_t bits = e4m3_from_float(static_cast<float>(value));
    return write(at, bits == 0xff ? std::uint8_t{0x7f} : bits);  // what overflows has no sign
  }
  if (type == ElementType::kFloat8E5M2)
    return write(at, e5m2_from_float(static_cast<float>(value)));
  if (type == ElementType::kFloat32) return write(at, static_cast<float>(value));
  if (type == ElementType::kFloat64) return write(at, value);
  write_integer(type, at, static_cast<std::int64_t>(value));
}

template <typename A>
A fold(Reduction reduction, A a, A b) {
  switch (reduction) {
    case Reduction::kMin:
      return b < a ? b : a;
    case Reduction::kMax:
      return a < b ? b : a;
    case Reduction::kProduct:
      if constexpr (std::is_integral_v<A>)
        return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    default:
      if constexpr (std::is_integral_v<A>)
        return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
  }
}

void reduce_bool(const CollectiveRequest& request, const std::vector<Bytes>& inputs, std::size_t at,
                 std::byte* out) {
  const bool is_and =
      request.reduction == Reduction::kMin || request.reduction == Reduction::kProduct;
  bool result = is_and;
  for (const Bytes& input : inputs) {
    const bool value = input[at] != std::byte{0};
    result = is_and ? result && value : result || value;
  }
  *out = std::byte{result};
}

void reduce_integer(const CollectiveRequest& request, const std::vector<Bytes>& inputs,
                    std::size_t at, std::byte* out) {
  std::int64_t result = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    std::byte scaled[8];
    std::int64_t value = read_integer(request.type, &inputs[r][at]);
    if (request.prescale != 1)
      value = static_cast<std::int64_t>(static_cast<double>(value) * request.prescale);
    write_integer(request.type, scaled, value);
    value = read_integer(request.type, scaled);
    result = r == 0 ? value : fold(request.reduction, result, value);
  }
  write_integer(request.type, out, result);
  result = read_integer(request.type, out);
  if (request.postscale != 1)
    result = static_cast<std::int64_t>(static_cast<double>(result) * request.postscale);
  write_integer(request.type, out, result);
  write_integer(request.type, out, read_integer(request.type, out) / request.divisor);
}

void reduce_floating(const CollectiveRequest& request, const std::vector<Bytes>& inputs,
                     std::size_t at, std::byte* out) {
  double result = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    std::byte scaled[8];
    write_number(request.type, scaled,
                 read_number(request.type, &inputs[r][at]) * request.prescale);
    const double value = read_number(request.type, scaled);
    result = r == 0 ? value : fold(request.reduction, result, value);
  }
  write_number(request.type, out,
               result * request.postscale / static_cast<double>(request.divisor));
}

// The thread sanitizer learns by memcmp that this thread reads all of both.
bool have_same_bits(const Bytes& a, const Bytes& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Order of magnitude and sign as one scale, so that neighbours differ by 1.
std::int64_t ordinal(ElementType type, const std::byte* at) {
  std::int64_t bits = 0;
  std::memcpy(&bits, at, element_size(type));
  const std::int64_t sign = std::int64_t{1} << (8 * element_size(type) - 1);
  if (type == ElementType::kFloat64) return bits < 0 ? -(bits & INT64_MAX) : bits;
  return bits & sign ? -(bits & (sign - 1)) : bits;
}

std::vector<double> scaled(std::vector<double> numbers, double factor) {
  for (double& number : numbers) number *= factor;
  return numbers;
}

std::vector<double> adasum_of_two(const std::vector<double>& a, const std::vector<double>& b) {
  const double ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double aa = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  const double bb = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i)
    result.push_back(a[i] * (aa == 0 ? 1 : 1 - ab / (2 * aa)) +
                     b[i] * (bb == 0 ? 1 : 1 - ab / (2 * bb)));
  return result;
}

}  // namespace

std::vector<double> numbers_of(ElementType type, const Bytes& bytes) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < bytes.size(); at += element_size(type))
    numbers.push_back(read_number(type, &bytes[at]));
  return numbers;
}

Bytes bytes_of(ElementType type, const std::vector<double>& numbers) {
  Bytes bytes(numbers.size() * element_size(type));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    write_number(type, &bytes[i * element_size(type)], numbers[i]);
  return bytes;
}

std::vector<double> rounded(ElementType type, const std::vector<double>& numbers) {
  return numbers_of(type, bytes_of(type, numbers));
}

const std::vector<ElementType>& all_types() { return kAllTypes; }

const std::vector<Reduction>& all_reductions() { return kAllReductions; }

Bytes random_elements(ElementType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count * element_size(type));
  const std::int64_t most = is_float8(type) ? 1 : 4;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * most + 1)) -
        (type == ElementType::kUint8 ? 0 : most);
    std::byte* at = &bytes[i * element_size(type)];
    if (type == ElementType::kBool) {
      *at = std::byte{static_cast<unsigned char>(value > 2)};
    } else {
      write_number(type, at, static_cast<double>(value));
    }
  }
  return bytes;
}

Bytes reference_allreduce(const CollectiveRequest& request, const std::vector<Bytes>& inputs) {
  Bytes result(inputs[0].size());
  for (std::size_t at = 0; at < result.size(); at += element_size(request.type)) {
    if (request.type == ElementType::kBool) {
      reduce_bool(request, inputs, at, &result[at]);
    } else if (is_floating(request.type)) {
      reduce_floating(request, inputs, at, &result[at]);
    } else {
      reduce_integer(request, inputs, at, &result[at]);
    }
  }
  return result;
}

Bytes reference_adasum(const CollectiveRequest& request, const std::vector<Bytes>& inputs) {
  const std::size_t ranks = inputs.size();
  std::vector<std::vector<double>> vectors;
  for (const Bytes& input : inputs)
    vectors.push_back(
        rounded(request.type, scaled(numbers_of(request.type, input), request.prescale)));
  std::size_t paired = 1;
  while (paired * 2 <= ranks) paired *= 2;
  for (std::size_t rank = paired; rank < ranks; ++rank)
    vectors[rank - paired] =
        rounded(request.type, adasum_of_two(vectors[rank - paired], vectors[rank]));
  for (std::size_t distance = 1; distance < paired; distance *= 2)
    for (std::size_t rank = 0; rank < paired; rank += 2 * distance)
      vectors[rank] = rounded(request.type, adasum_of_two(vectors[rank], vectors[rank + distance]));
  return bytes_of(request.type, scaled(std::move(vectors[0]), request.postscale));
}

std::string first_distance(ElementType type, const Bytes& expected, const Bytes& actual,
                           double tolerance, double at_least) {
  if (expected.size() != actual.size()) return "sizes differ";
  if (have_same_bits(expected, actual)) tolerance = 0;  // a NaN is still a difference
  const std::vector<double> due = numbers_of(type, expected), got = numbers_of(type, actual);
  double largest = at_least;
  for (const double value : due) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (!(std::abs(due[i] - got[i]) <= tolerance * largest))
      return "element " + std::to_string(i) + " of " + std::to_string(due.size()) + " is " +
             std::to_string(got[i]) + ", not " + std::to_string(due[i]);
  }
  return {};
}

std::string first_difference(ElementType type, const Bytes& expected, const Bytes& actual,
                             int ulps) {
  if (expected.size() != actual.size()) return "sizes differ";
  if (have_same_bits(expected, actual)) return {};
  const std::size_t size = element_size(type);
  for (std::size_t at = 0; at < expected.size(); at += size) {
    const bool is_close =
        is_floating(type)
            ? std::llabs(ordinal(type, &expected[at]) - ordinal(type, &actual[at])) <= ulps
            : std::memcmp(&expected[at], &actual[at], size) == 0;
    if (!is_close)
      return "element " + std::to_string(at / size) + " of " +
             std::to_string(expected.size() / size) + " is " +
             std::to_string(read_number(type, &actual[at])) + ", not " +
             std::to_string(read_number(type, &expected[at]));
  }
  return {};
}

}  // namespace hv::runtime
