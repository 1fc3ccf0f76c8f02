// Adasum on every job shape against the plain reference, and the same bits on every rank.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>

#include "tests/ranks/collective_checks.h"
#include "tests/ranks/drawn.h"

namespace hv::runtime {
namespace {

const std::map<ElementType, double> kTolerances = {
    {ElementType::kFloat16, 2e-3},    {ElementType::kBfloat16, 2e-2},
    {ElementType::kFloat32, 1e-6},    {ElementType::kFloat64, 1e-14},
    {ElementType::kFloat8E4M3, 0.15}, {ElementType::kFloat8E5M2, 0.3}};

// with_zeros: every second rank gives zeros.
std::vector<Bytes> inputs_of(int ranks, ElementType type, std::size_t count, std::uint64_t seed,
                             bool with_zeros) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank)
    inputs.push_back(with_zeros && rank % 2 == 1
                         ? Bytes(count * element_size(type))
                         : random_elements(type, count, 100 * seed + static_cast<unsigned>(rank)));
  return inputs;
}

// shift: bytes from an aligned address to the tensors.
void run_one(RankContext& context, CollectiveRequest request, std::size_t count, std::uint64_t seed,
             SharedResults& results, std::size_t shift = 0) {
  const bool in_place = seed % 2 == 0, with_zeros = seed % 3 == 0;
  const std::vector<Bytes> inputs = inputs_of(context.size, request.type, count, seed, with_zeros);
  const Bytes expected = reference_adasum(request, inputs);
  Bytes input = inputs[static_cast<std::size_t>(context.rank)];
  input.insert(input.begin(), shift, std::byte{0x5a});
  Bytes output(input.size());
  const Bytes untouched = input;
  std::byte* const to = (in_place ? input.data() : output.data()) + shift;
  request.segments = {{input.data() + shift, to, static_cast<std::int64_t>(count)}};
  const std::string what = "adasum of " + std::to_string(count) + " " +
                           element_type_name(request.type) + ", seed " + std::to_string(seed);
  context.at(what);
  const Status status = context.run(request);
  require(status.ok(), what + ": " + status.message);
  const Bytes result(to, to + count * element_size(request.type));
  const std::string wrong =
      first_distance(request.type, expected, result, kTolerances.at(request.type));
  require(wrong.empty(), what + ": " + wrong);
  require(in_place || input == untouched, what + ": the input stays as it is");
  results.add(what, result);
}

}  // namespace

TEST_CASE("adasum equals the reference for every shape, type and odd count, on all ranks alike") {
  const std::vector<RankKind> kinds = {RankKind::kThreadsOneMapping, RankKind::kThreadsMemfd};
  const std::vector<std::size_t> counts = {0, 1, 3, 17, 1000, 4097, 20011};
  std::vector<ElementType> types;
  for (const auto& [type, tolerance] : kTolerances) types.push_back(type);
  const auto all = drawn_product(all_shapes(), kinds, types, counts);
  for (const JobShape& shape : all_shapes()) {
    CAPTURE(name_of(shape));
    for (const RankKind kind : kinds) {
      SharedResults results(size_of(shape));
      RunOptions options;
      options.kind = kind;
      options.config.slot_bytes = 4096;
      run_ranks(shape, options, [&](RankContext& context) {
        std::uint64_t seed = 1;
        for (const auto& [in_shape, of_kind, type, count] : all)
          if (in_shape == shape && of_kind == kind)
            run_one(context, allreduce_of(type, Reduction::kAdasum), count, seed++, results);
      });
    }
  }
}

TEST_CASE("adasum takes tensors at any address") {
  for (const JobShape& shape : {JobShape{2}, JobShape{3}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    SharedResults results(size_of(shape));
    run_ranks(shape, {}, [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& [type, tolerance] : kTolerances)
        for (const std::size_t shift : {1, 3})
          for (int i = 0; i < 2; ++i)
            run_one(context, allreduce_of(type, Reduction::kAdasum), 1001, seed++, results, shift);
    });
  }
}

TEST_CASE("adasum scales what goes in and what comes out") {
  for (const JobShape& shape : {JobShape{1}, JobShape{3}, JobShape{2, 2}}) {
    CAPTURE(name_of(shape));
    SharedResults results(size_of(shape));
    run_ranks(shape, {}, [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& [type, tolerance] : kTolerances) {
        CollectiveRequest request = allreduce_of(type, Reduction::kAdasum);
        request.prescale = 0.25;
        request.postscale = 3;
        for (int i = 0; i < 2; ++i) run_one(context, request, 1001, seed++, results);
      }
    });
  }
}

}  // namespace hv::runtime
