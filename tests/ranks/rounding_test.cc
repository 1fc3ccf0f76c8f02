// Where sums of 16-bit and 8-bit floats are rounded: once a host, and once over hosts.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// Next to large the type has even multiples of 1 only: large + 1 is a tie, and rounds to large.
struct Narrow {
  ElementType type;
  double large;
};
constexpr Narrow kNarrow[] = {{ElementType::kFloat16, 2048},
                              {ElementType::kBfloat16, 256},
                              {ElementType::kFloat8E4M3, 16},
                              {ElementType::kFloat8E5M2, 8}};

struct RoundingCase {
  JobShape shape;
  const char* algorithms;
  double more_than_large;  // of large + 1 + 1
  const char* why;
};

// Of one element, and of several blocks: what is small, and what is large, goes another way.
void check_sum(RankContext& context, const Narrow& narrow, double expected) {
  for (const std::size_t count : {1, 200003}) {
    const std::vector<double> numbers(count, context.rank == 0 ? narrow.large : 1);
    Bytes values = bytes_of(narrow.type, numbers);
    CollectiveRequest request = allreduce_of(narrow.type, Reduction::kSum);
    request.segments = {{values.data(), values.data(), static_cast<std::int64_t>(count)}};
    const Status status = context.run(request);
    require(status.ok(), status.message);
    const std::vector<double> sums = numbers_of(narrow.type, values);
    require(sums == std::vector<double>(count, expected),
            std::string(element_type_name(narrow.type)) + ": " + std::to_string(sums[0]) +
                ", not " + std::to_string(expected));
  }
}

}  // namespace

TEST_CASE("a sum of 16-bit or 8-bit floats is rounded once a host, and once over hosts") {
  const RoundingCase cases[] = {
      {{3}, "", 2, "all three are added in single precision"},
      {{1, 1, 1}, "", 2, "a host of one rank rounds nothing, and the sum over hosts is one"},
      {{1, 2}, "", 2, "the second host's sum is 2"},
      {{2, 1}, "", 0, "the first host's sum is rounded to the large one, then the next is"},
      {{1, 1, 1}, "cross:tree", 0, "a tree rounds at each host"},
      {{1, 1, 1}, "cross:doubling", 0, "and so does recursive doubling"},
      {{1, 1, 1}, "cross:halving", 0, "and halving"},
  };
  for (const RoundingCase& each : cases) {
    CAPTURE(name_of(each.shape));
    CAPTURE(each.algorithms);
    CAPTURE(each.why);
    RunOptions options;
    options.algorithms = each.algorithms;
    run_ranks(each.shape, options, [&](RankContext& context) {
      for (const Narrow& narrow : kNarrow)
        check_sum(context, narrow, narrow.large + each.more_than_large);
    });
  }
}

}  // namespace hv::runtime
