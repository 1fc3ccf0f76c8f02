// Every algorithm, asked for by name, on every shape that it works for, against the plain
// reference.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "runtime/collective/registry.h"
#include "tests/ranks/collective_checks.h"
#include "tests/ranks/drawn.h"

namespace hv::runtime {
namespace {

struct Forced {
  std::string words;  // as HVRUN_ALGORITHM
  std::vector<JobShape> shapes;
};

// An algorithm on one shape.
struct ForcedOn {
  std::string words;
  JobShape shape;
  bool operator==(const ForcedOn&) const = default;
};

const std::vector<JobShape> on_several = {{1, 1}, {1, 1, 1}, {2, 2}, {3, 1, 2}, {1, 1, 1, 1, 1}};

std::vector<Forced> forced_allreduces() {
  const std::vector<JobShape> on_one = {{2}, {4}, {5}};
  std::vector<Forced> all = {{"allreduce:direct", on_one}, {"allreduce:shares", on_one}};
  for (const CrossAlgorithm& way : cross_algorithms())
    all.push_back({"allreduce:torus,cross:" + std::string(way.name), on_several});
  all.push_back({"allreduce:hierarchical,cross:ring", {{2, 2}, {3, 1, 2}}});
  all.push_back({"allreduce:hierarchical,cross:halving", {{2, 2}, {3, 1, 2}}});
  // Any of several, by size.
  all.push_back({"cross:tree@2K,cross:doubling@8K,cross:halving@20K,cross:ring", {{2, 1, 2}}});
  return all;
}

// Small slots: a tensor has many blocks, and several are under way at once.
RunOptions options_for(const std::string& algorithms) {
  RunOptions options;
  options.config.slot_bytes = 4096;
  options.algorithms = algorithms;
  return options;
}

std::vector<ForcedOn> on_each_shape(const std::vector<Forced>& all) {
  std::vector<ForcedOn> each;
  for (const Forced& forced : all)
    for (const JobShape& shape : forced.shapes) each.push_back({forced.words, shape});
  return each;
}

template <typename Body>
void run_forced(const ForcedOn& forced, Body&& body) {
  INFO(forced.words);
  INFO(name_of(forced.shape));
  const int hosts = static_cast<int>(forced.shape.size());
  for (const AlgorithmWish& wish : parse_algorithms(forced.words))
    REQUIRE(impossible_wish({wish}, {size_of(forced.shape), hosts}, false).empty());
  run_ranks(forced.shape, options_for(forced.words), body);
}

template <typename Body>
void for_each_of(const std::vector<Forced>& all, Body&& body) {
  for (const ForcedOn& forced : on_each_shape(all)) run_forced(forced, body);
}

}  // namespace

TEST_CASE("every allreduce gives the reference's result for every type, reduction and odd count") {
  const std::vector<ForcedOn> each = on_each_shape(forced_allreduces());
  const std::vector<std::size_t> counts = {0, 1, 17, 5003};
  const auto all = drawn_product(each, all_types(), all_reductions(), counts);
  for (const ForcedOn& forced : each)
    run_forced(forced, [&](RankContext& context) {
      std::uint64_t seed = 1;
      for (const auto& [in_forced, type, reduction, count] : all) {
        if (in_forced != forced) continue;
        ++seed;
        run_and_verify(context, make_allreduce(context, allreduce_of(type, reduction), {count},
                                               seed % 2 == 0, seed));
      }
    });
}

TEST_CASE("every allreduce scales, averages and takes fused segments") {
  for_each_of(forced_allreduces(), [](RankContext& context) {
    for (const ElementType type : all_types()) {
      if (type == ElementType::kBool) continue;
      CollectiveRequest request = allreduce_of(type, Reduction::kSum);
      request.divisor = context.size;
      run_and_verify(context, make_allreduce(context, request, {3001, 0, 77}, false, 3));
      request.prescale = 0.5;
      request.postscale = 4;
      run_and_verify(context, make_allreduce(context, request, {1, 5000, 0, 1024}, true, 4));
    }
  });
}

TEST_CASE(
    "every broadcast hands the root's bytes to everybody, from input to output and in place") {
  for_each_of({{"broadcast:tree", on_several}, {"broadcast:chain", on_several}},
              [](RankContext& context) {
                for (int root = 0; root < context.size; ++root)
                  for (const std::uint64_t seed : {2, 3})
                    for (const std::size_t count : {0, 1, 2048, 30011})
                      run_and_verify(context, make_broadcast(context, ElementType::kInt16, root,
                                                             {count, 5, 6144}, seed));
              });
}

TEST_CASE("every algorithm runs between other collectives, several at once, in each rank's order") {
  const auto rounds = static_cast<std::uint64_t>(scaled(4));
  for_each_of(forced_allreduces(), [rounds](RankContext& context) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const std::uint64_t round = test_seed() + i;
      std::vector<std::unique_ptr<CheckedOperation>> operations;
      for (std::uint64_t one = 0; one < 8; ++one)
        operations.push_back(make_random(context, round * 100 + one));
      run_together(context, std::move(operations), round);
    }
  });
}

}  // namespace hv::runtime
