// Allreduce with a wire type of its own, on every job shape.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/ranks/collective_checks.h"
#include "tests/ranks/drawn.h"

namespace hv::runtime {
namespace {

double epsilon_of(Compression compression) {
  return compression == Compression::kFloat16 ? 0x1p-10 : 0x1p-7;
}

constexpr double kLargest = 2;

// Between -kLargest and kLargest, hardly any of them of few bits.
Bytes random_input(ElementType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers)
    number = kLargest * (static_cast<double>(random() % 200001) / 1e5 - 1);
  return bytes_of(type, numbers);
}

void run_compressed(RankContext& context, CollectiveRequest request,
                    const std::vector<std::size_t>& pieces, std::uint64_t seed,
                    SharedResults& results) {
  const std::size_t count = std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < context.size; ++rank)
    inputs.push_back(random_input(request.type, count, 100 * seed + static_cast<unsigned>(rank)));
  Bytes input = inputs[static_cast<std::size_t>(context.rank)], output(input.size());
  const bool in_place = seed % 2 == 0;
  std::size_t at = 0;
  for (const std::size_t piece : pieces) {
    std::byte* const to = (in_place ? input : output).data() + at;
    request.segments.push_back({input.data() + at, to, static_cast<std::int64_t>(piece)});
    at += piece * element_size(request.type);
  }
  const ElementType wire = wire_type(request.type, request.compression);
  const std::string what = std::string(reduction_name(request.reduction)) + " of " +
                           std::to_string(count) + " " + element_type_name(request.type) + " as " +
                           element_type_name(wire) + ", seed " + std::to_string(seed);
  context.at(what);
  const Status status = context.run(request);
  require(status.ok(), what + ": " + status.message);
  const Bytes& result = in_place ? input : output;
  const std::string wrong = first_distance(request.type, reference_allreduce(request, inputs),
                                           result, 4 * epsilon_of(request.compression), kLargest);
  require(wrong.empty(), what + ": " + wrong);
  const std::vector<double> numbers = numbers_of(request.type, result);
  require(numbers == rounded(wire, numbers), what + ": the result is of the wire type");
  results.add(what, result);
}

CollectiveRequest compressed(ElementType type, Reduction reduction, Compression compression) {
  CollectiveRequest request = allreduce_of(type, reduction);
  request.compression = compression;
  return request;
}

const std::vector<ElementType> kTypes = {ElementType::kFloat32, ElementType::kFloat64};
const std::vector<Compression> kCompressions = {Compression::kFloat16, Compression::kBfloat16};

// body(context, results, seed, ...) with each combination of all whose first value is the shape.
template <class Combinations, class Body>
void for_each_compression(const Combinations& all, const Body& body) {
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    SharedResults results(size_of(shape));
    RunOptions options;
    options.config.slot_bytes = 4096;
    run_ranks(shape, options, [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& each : all)
        if (std::get<0>(each) == shape) body(context, results, seed, each);
    });
  }
}

}  // namespace

TEST_CASE(
    "a compressed allreduce is near the reference and the same on all ranks, whatever shape") {
  const std::vector<std::size_t> counts = {0, 1, 17, 4097, 20011};
  for_each_compression(
      drawn_product(all_shapes(), kTypes, kCompressions, all_reductions(), counts),
      [](RankContext& context, SharedResults& results, std::uint64_t& seed, const auto& each) {
        const auto& [shape, type, compression, reduction, count] = each;
        run_compressed(context, compressed(type, reduction, compression), {count}, seed++, results);
      });
}

TEST_CASE("a fused, scaled, averaged and compressed allreduce does all of that") {
  for_each_compression(drawn_product(all_shapes(), kTypes, kCompressions), [](RankContext& context,
                                                                              SharedResults&
                                                                                  results,
                                                                              std::uint64_t& seed,
                                                                              const auto& each) {
    const auto& [shape, type, compression] = each;
    CollectiveRequest request = compressed(type, Reduction::kSum, compression);
    request.divisor = context.size;
    request.prescale = 3;
    request.postscale = 0.25;
    for (int i = 0; i < 2; ++i)
      run_compressed(context, request, {1, 5000, 0, 3, 1024, 1023, 1, 1, 9000, 0}, seed++, results);
  });
}

TEST_CASE(
    "sums of a compressed allreduce are made in float32: small terms are not lost on the way") {
  // 2048 + 1 rounds to 2048 in float16, and so would each of eight.
  const std::size_t count = 5000;
  run_ranks({8}, {}, [&](RankContext& context) {
    std::vector<float> values(count, context.rank == 0 ? 2048.0f : 1.0f);
    CollectiveRequest request =
        compressed(ElementType::kFloat32, Reduction::kSum, Compression::kFloat16);
    auto* const at = reinterpret_cast<std::byte*>(values.data());
    request.segments = {{at, at, static_cast<std::int64_t>(count)}};
    require(context.run(request).ok(), "sum");
    require(values == std::vector<float>(count, 2056.0f), "not " + std::to_string(values[0]));
  });
}

}  // namespace hv::runtime
