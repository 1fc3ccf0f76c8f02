// What whole jobs count of the bytes that they move, by the way these went.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kCount = 1000;
constexpr std::uint64_t kBytes = kCount * 4;
constexpr std::uint64_t kHeader = 16;  // of a chunk of a send

struct Moved {
  std::uint64_t shared_memory, tcp;
};

Moved moved_by(const Rank& rank) {
  const MovedBytes& moved = *rank.context.observation().moved;
  return {moved.shared_memory.load(), moved.tcp.load()};
}

// What one operation has this rank move.
Moved moved_in(const Rank& rank, hvrun_operation operation, int root = 0) {
  std::vector<float> input(kCount, 1), output(2 * kCount);
  hvrun_request request = allreduce_request("t", &kCount, input.data(), output.data());
  request.operation = operation;
  request.root = root;
  if (operation == HVRUN_SEND) request.output = nullptr;
  const Moved before = moved_by(rank);
  const Status status = rank.run(request);
  expect(status.ok(), status.message);
  const Moved after = moved_by(rank);
  return {after.shared_memory - before.shared_memory, after.tcp - before.tcp};
}

void expect_moved(const Rank& rank, hvrun_operation operation, std::uint64_t bytes, int root = 0) {
  const bool is_one_host = rank.context.observation().moved->tcp.load() == 0;
  const Moved moved = moved_in(rank, operation, root);
  const std::string what = "operation " + std::to_string(operation) + " on rank " +
                           std::to_string(rank.rank) + ": " + std::to_string(moved.shared_memory) +
                           " in shared memory, " + std::to_string(moved.tcp) + " over tcp";
  expect(is_one_host || moved.shared_memory == 0, what);
  expect(moved.shared_memory + moved.tcp == bytes, what);
}

}  // namespace

TEST_CASE("each operation's bytes are counted by the way they went, within a host and between") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    run_job(options, [&shape](Rank& rank) {
      const Moved first = moved_in(rank, HVRUN_ALLREDUCE);
      const bool is_one_host = shape.size() == 1;
      expect(first.shared_memory == (is_one_host ? kBytes : 0), "shared memory");
      expect(first.tcp == (is_one_host ? 0 : kBytes), "tcp");
      expect_moved(rank, HVRUN_ALLGATHER, kBytes);
      expect_moved(rank, HVRUN_BROADCAST, rank.rank == 1 ? kBytes : 0, 1);
      expect_moved(rank, HVRUN_REDUCESCATTER, kBytes / 2);
      expect_moved(rank, rank.rank == 0 ? HVRUN_SEND : HVRUN_RECEIVE,
                   rank.rank == 0 ? kBytes + kHeader : 0, 1 - rank.rank);
    });
  }
}
