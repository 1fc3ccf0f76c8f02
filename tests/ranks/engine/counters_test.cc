// What whole jobs count of the bytes that they move, by the way these went.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <vector>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kCounterCount = 1000;
constexpr std::uint64_t kBytes = kCounterCount * 4;
constexpr std::uint64_t kHeader = 16;  // of a chunk of a send

struct Moved {
  std::uint64_t shared_memory, tcp;
};

Moved moved_by(const Rank& rank) {
  const MovedBytes& moved = *rank.context.observation().moved;
  return {moved.shared_memory.load(), moved.tcp.load()};
}

Moved moved_by_running(const Rank& rank, const hvrun_request& request) {
  const Moved before = moved_by(rank);
  const Status status = rank.run(request);
  expect(status.ok(), status.message);
  const Moved after = moved_by(rank);
  return {after.shared_memory - before.shared_memory, after.tcp - before.tcp};
}

// What one operation has this rank move.
Moved moved_in(const Rank& rank, hvrun_operation operation, int root = 0) {
  std::vector<float> input(kCounterCount, 1), output(2 * kCounterCount);
  hvrun_request request = allreduce_request("t", &kCounterCount, input.data(), output.data());
  request.operation = operation;
  request.root = root;
  if (operation == HVRUN_SEND) request.output = nullptr;
  return moved_by_running(rank, request);
}

template <typename T>
std::uint64_t moved_by_sum(const Rank& rank, hvrun_type type, hvrun_compression compression) {
  std::vector<T> input(kCounterCount, 1), output(kCounterCount);
  hvrun_request request = allreduce_request("c", &kCounterCount, input.data(), output.data(), type);
  request.compression = compression;
  const Moved moved = moved_by_running(rank, request);
  expect(output == std::vector<T>(kCounterCount, static_cast<T>(rank.size)), "the sum");
  return moved.shared_memory + moved.tcp;
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

TEST_CASE("each operation's bytes are counted by the way they went, within a host and between" *
          doctest::test_suite("host")) {
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

// Rounding alone would give the same results. Within a host every rank copies its tensor in, and
// its share of the result out; between hosts each sends its own to all others.
TEST_CASE("a compressed allreduce moves the wire type's bytes, within a host and between" *
          doctest::test_suite("host")) {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}, JobShape{3}, JobShape{1, 1, 1}}) {
    CAPTURE(name_of(shape));
    const std::uint64_t ranks = static_cast<std::uint64_t>(size_of(shape)), wire_bytes = kBytes / 2;
    const std::uint64_t tensors = shape.size() == 1 ? ranks + 1 : ranks * (ranks - 1);
    for (const hvrun_compression wire : {HVRUN_COMPRESSION_FP16, HVRUN_COMPRESSION_BF16}) {
      CAPTURE(wire);
      std::atomic<std::uint64_t> of_float{0}, of_double{0};
      JobOptions options;
      options.shape = shape;
      run_job(options, [&](Rank& rank) {
        of_float += moved_by_sum<float>(rank, HVRUN_FLOAT32, wire);
        of_double += moved_by_sum<double>(rank, HVRUN_FLOAT64, wire);
      });
      CHECK(of_float == tensors * wire_bytes);
      CHECK(of_double == tensors * wire_bytes);
    }
  }
}
