// Jobs of more ranks on one host than a machine of today's tests has cores.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {

TEST_CASE("an allreduce of more than 64 ranks on a host equals the reference") {
  RunOptions options;
  options.config.slot_bytes = 4096;
  options.deadline = std::chrono::seconds(120);
  run_ranks({70}, options, [](RankContext& context) {
    // Small: everybody folds all inputs; larger: each its share, over several blocks.
    for (const std::size_t count : {3, 500, 6000}) {
      for (const ElementType type : {ElementType::kFloat16, ElementType::kInt32}) {
        run_and_verify(context, make_allreduce(context, allreduce_of(type, Reduction::kSum),
                                               {count}, count == 3, count));
      }
    }
  });
}

}  // namespace hv::runtime
