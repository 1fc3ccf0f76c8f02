// A tensor whose cache entry is evicted while the tensor is in flight, with whole runtimes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// Each rank gives `rows` rows of its own number; returns once enqueued.
OperationPtr enqueue_gather(Rank& rank, const std::vector<std::int64_t>& input,
                            std::uint64_t* handle) {
  const std::int64_t extents[] = {static_cast<std::int64_t>(input.size())};
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLGATHER;
  request.name = "x";
  request.type = HVRUN_INT64;
  request.ndim = 1;
  request.shape = extents;
  request.input = input.data();
  const Status status = rank.enqueue(request, handle);
  expect(status.ok(), status.message);
  return rank.context.find(*handle);
}

}  // namespace

TEST_CASE("an allgather evicted from the cache while it is in flight gathers what each rank gave") {
  JobOptions options;
  options.shape = {1, 2};
  options.environment.set("HVRUN_CACHE_CAPACITY", "1");
  run_job(options, [](Rank& rank) {
    constexpr std::int64_t kRounds = 20;
    for (std::int64_t round = 0; round < kRounds; ++round) {
      rank.at("round " + std::to_string(round));
      // Rank 1, which speaks for rank 2 as well, changes its rows; rank 2 does later on.
      const std::int64_t rows[] = {1, 1 + round, round < kRounds / 2 ? 2 : round};
      const std::vector<std::int64_t> input(static_cast<std::size_t>(rows[rank.rank]), rank.rank);
      const std::int64_t one = 1;
      float value = 1;
      std::uint64_t handle = 0;
      OperationPtr gathered;
      // Rank 0 has x only after y has pushed it out.
      if (rank.rank != 0) gathered = enqueue_gather(rank, input, &handle);
      const Status status = rank.run(allreduce_request("y", &one, &value, &value));
      expect(status.ok() && value == 3, "y: " + status.message);
      if (rank.rank == 0) gathered = enqueue_gather(rank, input, &handle);
      const Status joined = rank.wait(handle);
      expect(joined.ok(), "x: " + joined.message);
      std::vector<std::int64_t> expected;
      for (const std::int64_t from : {0, 1, 2})
        expected.insert(expected.end(), static_cast<std::size_t>(rows[from]), from);
      expect(gathered->result_bytes == expected.size() * 8 &&
                 std::memcmp(gathered->output, expected.data(), gathered->result_bytes) == 0,
             "the rows of round " + std::to_string(round));
    }
  });
}
