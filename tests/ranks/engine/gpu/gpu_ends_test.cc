// Results that have been told as done come, though the GPU reaches them only after their set, or
// their rank's runtime, has gone.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runtime/api/request_reader.h"
#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/processes.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// Of more than the pieces in which it is packed and of less, by one rank.
struct Sums {
  explicit Sums(Gpu& gpu) : gpu_(gpu) {
    for (const std::int64_t count : counts) {
      const std::vector<float> ones(static_cast<std::size_t>(count), 1.0f);
      blocks.push_back(gpu.put(ones.data(), ones.size() * sizeof(float)));
    }
  }
  hvrun_request request(std::size_t index, std::uint32_t set) {
    hvrun_request one = allreduce_request(index == 0 ? "few" : "many", &counts[index],
                                          blocks[index], blocks[index]);
    one.process_set = set;
    gpu_.place(&one);
    return one;
  }
  bool are(float sum) {
    bool are_all = true;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto count = static_cast<std::size_t>(counts[i]);
      are_all = are_all && gpu_.values<float>(blocks[i], count) == std::vector<float>(count, sum);
    }
    return are_all;
  }

  std::vector<std::int64_t> counts{10, 1 << 20};
  std::vector<std::byte*> blocks;

 private:
  Gpu& gpu_;
};

}  // namespace

TEST_SUITE_BEGIN("nccl");

// One that has none, whatever it is told, keeps all from windows: NCCL would choose other kernels.
TEST_CASE("windows of NCCL's are there where every rank wants them, and else nowhere") {
  for (const bool has_all : {true, false}) {
    CAPTURE(has_all);
    Processes job({3}, [has_all](Context& context) {
      const int rank = context.identity().rank;
      ::setenv("HVRUN_NCCL_WINDOWS", has_all || rank != 1 ? "1" : "0", 1);
      Gpu& gpu = *new Gpu(0);
      Sums sums(gpu);
      std::uint64_t handles[2] = {};
      for (std::size_t i = 0; i < sums.blocks.size(); ++i) {
        hvrun_request request = sums.request(i, 0);
        request.group = 1;
        request.group_size = 2;
        OperationPtr operation;
        if (!read_request(&request, 3, &operation).ok()) return 2;
        if (!context.enqueue(std::move(operation), &handles[i]).ok()) return 3;
      }
      for (const std::uint64_t handle : handles)
        if (!context.wait(*context.find(handle), TimePoint::max()).ok()) return 4;
      if (!sums.are(3)) return 5;
      return Gpu::nccl_calls("ncclCommWindowRegister") == (has_all ? 1 : 0) ? 0 : 6;
    });
    for (const int rank : {2, 1, 0}) CHECK(job.exit_code(rank) == 0);
  }
}

TEST_CASE("a rank whose runtime has ended stays until its peers' GPUs have what they need of it") {
  Processes job({2}, [](Context& context) {
    Gpu& gpu = *new Gpu(0);  // each process has its own, and does not wait for it at its end
    Sums sums(gpu);
    if (context.identity().rank == 1) gpu.hold();
    for (std::size_t i = 0; i < sums.blocks.size(); ++i)
      if (!run_in(context, sums.request(i, 0)).ok()) return 2;
    context.shutdown();
    if (context.identity().rank == 0) return 0;
    gpu.let_go();
    return sums.are(2) ? 0 : 3;
  });
  CHECK(job.exit_code(1) == 0);
  CHECK(job.exit_code(0) == 0);
}

TEST_CASE("a set that goes before its GPUs' work has begun has its sums all the same") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 2}, &set).ok(), "add");
    Gpu gpu(rank.rank);
    Sums sums(gpu);
    gpu.hold();
    if (rank.rank != 1)
      for (std::size_t i = 0; i < sums.blocks.size(); ++i)
        expect(rank.run(sums.request(i, set)).ok(), "a sum");
    expect(rank.context.remove_process_set(set).ok(), "remove");
    Sums after(gpu);  // other sets go on meanwhile
    for (std::size_t i = 0; i < after.blocks.size(); ++i)
      expect(rank.run(after.request(i, 0)).ok(), "a sum of all");
    expect(rank.run(barrier_request()).ok(), "all have removed it");
    gpu.let_go();
    expect(rank.rank == 1 || sums.are(2), "the sums of the set");
    expect(after.are(3), "the sums of all");
  });
}

// NCCL does not say of every peer that it has died: the job's failure is what ends the wait.
TEST_CASE("work of a set that has gone is given up when the job fails before the GPU has done it") {
  JobOptions options = in_shape({3});
  options.shuts_down = false;
  std::atomic<int> failed{0};
  run_job(options, [&failed](Rank& rank) {
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 2}, &set).ok(), "add");
    const bool is_member = rank.rank != 1;
    Gpu gpu(rank.rank);
    Sums sums(gpu);
    expect(rank.run(sums.request(0, 0)).ok(), "all have a communicator");
    expect(!is_member || rank.run(sums.request(0, set)).ok(), "the set has one");
    if (rank.rank == 0) Gpu::set_nccl_faults("ncclAllReduce@1=hang");
    expect(rank.run(barrier_request()).ok(), "before");
    expect(!is_member || rank.run(sums.request(0, set)).ok(), "it has been launched");
    expect(rank.context.remove_process_set(set).ok(), "remove");
    if (rank.rank == 0) Gpu::set_nccl_faults("ncclAllReduce@1=3");
    expect(rank.run(barrier_request()).ok(), "between");
    Status status;
    for (int round = 0; status.ok() && round < 20; ++round) status = rank.run(sums.request(1, 0));
    if (!status.ok()) ++failed;
    rank.context.shutdown();
    (void)gpu.get(nullptr, 0);  // whatever its stream waits for comes, or the test hangs
  });
  Gpu::set_nccl_faults("");
  CHECK(failed == 3);
  CHECK(Gpu::nccl_left() == 0);
}

// Two tensors travel as one bucket of 4 MiB: each of the two windows that take turns is made once.
TEST_CASE("a bucket lies in a window where all ranks want that, which goes with its set") {
  const int before = Gpu::nccl_calls("ncclCommWindowRegister");
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    Sums sums(gpu);
    for (int step = 0; step < 8; ++step) {
      std::uint64_t handles[2] = {};
      for (std::size_t i = 0; i < sums.blocks.size(); ++i) {
        hvrun_request request = sums.request(i, 0);
        request.group = 7;
        request.group_size = 2;
        request.reduction = HVRUN_MAX;
        expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
      }
      for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
    }
    expect(sums.are(1), "greatest");
  });
  const int registered = Gpu::nccl_calls("ncclCommWindowRegister") - before;
  CHECK(registered == (Gpu::has_windows() ? 2 * 3 : 0));
  CHECK(Gpu::nccl_left() == 0);
}

// As a training does whose first bucket is small.
TEST_CASE("a window grows with the buckets, and the memory of smaller ones stays for its work") {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    for (const std::int64_t count : {100, 1 << 19, 1 << 20, 1 << 18, 3 << 20}) {
      const std::vector<float> ones(static_cast<std::size_t>(count), 1.0f);
      std::byte* blocks[2] = {};
      std::uint64_t handles[2] = {};
      for (int i = 0; i < 2; ++i) {
        blocks[i] = gpu.put(ones.data(), ones.size() * sizeof(float));
        hvrun_request request = allreduce_request(i == 0 ? "a" : "b", &count, blocks[i], blocks[i]);
        request.group = 1;
        request.group_size = 2;
        gpu.place(&request);
        expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
      }
      for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
      for (const std::byte* const block : blocks)
        expect(gpu.values<float>(block, ones.size()) == std::vector<float>(ones.size(), 2.0f),
               "sum of " + std::to_string(count));
    }
  });
  CHECK(Gpu::nccl_left() == 0);
}

TEST_SUITE_END();
