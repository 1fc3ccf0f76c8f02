// Jobs whose hosts have very different numbers of ranks.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {

// 4,096 bytes among 71 contributions: less than a cache line for each.
TEST_CASE("an allgather's pieces shrink below a cache line where one rank carries very many") {
  RunOptions options;
  options.config.slot_bytes = 4096;
  options.deadline = std::chrono::seconds(120);
  run_ranks({1, 70}, options, [](RankContext& context) {
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < context.size; ++rank) counts.push_back(rank % 7 * 5);
    run_and_verify(context, make_allgather(context, ElementType::kInt32, counts, 10));
  });
}

// 4,096 bytes among 514 contributions: less than a word for each.
TEST_CASE("an allgather that one rank cannot carry is refused on every rank, in words") {
  RunOptions options;
  options.config.slot_bytes = 4096;
  options.deadline = std::chrono::seconds(240);
  run_ranks({1, 513}, options, [](RankContext& context) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size), 1);
    const auto gather = make_allgather(context, ElementType::kInt32, counts, 10);
    const Status status = context.run(gather->request);
    require(status.code == StatusCode::kUnsupported, status.message);
    for (const char* words : {"of 514 ranks", "start more ranks on the smallest host"})
      require(status.message.find(words) != std::string::npos, status.message);
  });
}

}  // namespace hv::runtime
