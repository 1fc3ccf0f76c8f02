// Sends and receives of GPUs' memory, of which only one end need be there.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kPairLaunchFailed = 719;
constexpr std::size_t kMany = 300001;  // more than a lane has room for

std::vector<std::int32_t> counted(std::size_t count, int from) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

// A rank that shuts down ends what others have not completed: nobody does before all are done.
void run_two(const std::function<void(Rank&, Gpu&)>& body) {
  run_job(in_shape({2}), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    body(rank, gpu);
    const Status status = rank.run(barrier_request());
    expect(status.ok(), status.message);
  });
}

}  // namespace

TEST_SUITE_BEGIN("host");

TEST_CASE("one end of a transfer lies on a GPU, the other on the host, and both on GPUs") {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kMany}) {
    CAPTURE(count);
    for (const int on_gpu : {1, 2, 3}) {  // bits: the sender, the receiver
      CAPTURE(on_gpu);
      run_two([&](Rank& rank, Gpu& gpu) {
        const auto extent = static_cast<std::int64_t>(count);
        const bool sends = rank.rank == 0, is_there = (on_gpu & (1 << rank.rank)) != 0;
        std::vector<std::int32_t> mine = sends ? counted(count, 7) : counted(count, 0);
        void* const data =
            is_there ? static_cast<void*>(gpu.put(mine.data(), 4 * count)) : mine.data();
        hvrun_request request =
            pair_request(sends ? HVRUN_SEND : HVRUN_RECEIVE, "x", 1 - rank.rank, &extent, data);
        if (is_there) gpu.place(&request);
        const Status status = rank.run(request);
        expect(status.ok(), status.message);
        if (sends) return;
        if (is_there) mine = gpu.values<std::int32_t>(data, count);
        expect(mine == counted(count, 7), "content");
      });
    }
  }
}

TEST_CASE("a receive that gives no memory gets the library's, on its GPU") {
  run_two([](Rank& rank, Gpu& gpu) {
    const std::int64_t extent = 1000;
    const auto mine = counted(1000, rank.rank);
    std::byte* const data = gpu.put(mine.data(), 4000);
    hvrun_request request = pair_request(rank.rank == 0 ? HVRUN_SEND : HVRUN_RECEIVE, "x",
                                         1 - rank.rank, &extent, rank.rank == 0 ? data : nullptr);
    gpu.place(&request);
    OperationPtr operation;
    const Status status = rank.run(request, &operation);
    expect(status.ok(), status.message);
    if (rank.rank == 1)
      expect(gpu.values<std::int32_t>(operation->output, 1000) == counted(1000, 0), "content");
  });
}

TEST_CASE("a tensor whose stream is busy holds up no other send") {
  run_two([](Rank& rank, Gpu& gpu) {
    const std::int64_t extent = 1000;
    auto fast = counted(1000, 1);
    if (rank.rank == 1) {
      for (const char* name : {"fast", "slow"}) {
        std::vector<std::int32_t> got(1000);
        const Status status = rank.run(pair_request(HVRUN_RECEIVE, name, 0, &extent, got.data()));
        expect(status.ok(), status.message);
        expect(got == counted(1000, name[0] == 'f' ? 1 : 2), name);
      }
      return;
    }
    gpu.hold();
    hvrun_request slow =
        pair_request(HVRUN_SEND, "slow", 1, &extent, gpu.put(counted(1000, 2).data(), 4000));
    gpu.place(&slow);
    std::uint64_t handle = 0;
    expect(rank.enqueue(slow, &handle).ok(), "slow");
    const Status status = rank.run(pair_request(HVRUN_SEND, "fast", 1, &extent, fast.data()));
    expect(status.ok(), status.message);
    gpu.let_go();
    expect(rank.wait(handle).ok(), "slow");
    rank.context.release(handle);
  });
}

// Neither may what goes before: whoever waits on a stream for another rank has not given that
// stream to the runtime.
TEST_CASE("a tensor whose stream is busy holds up nothing else on its GPU") {
  run_two([](Rank& rank, Gpu& busy) {
    Gpu free(rank.rank);  // another stream of the same GPU
    const std::int64_t extent = 1000;
    const bool sends = rank.rank == 0;
    std::vector<std::int32_t> mine(1000);
    busy.hold();
    std::byte* const late = busy.put(counted(1000, sends ? 2 : 0).data(), 4000);
    hvrun_request slow =
        pair_request(sends ? HVRUN_SEND : HVRUN_RECEIVE, "slow", 1 - rank.rank, &extent, late);
    busy.place(&slow);
    std::uint64_t handles[2] = {};
    expect(rank.enqueue(slow, &handles[0]).ok(), "slow");
    std::byte* const other = busy.put(counted(1000, 5).data(), 4000);
    hvrun_request sum = allreduce_request("a sum", &extent, other, other, HVRUN_INT32);
    busy.place(&sum);
    expect(rank.enqueue(sum, &handles[1]).ok(), "a sum");
    for (const char* name : {"one", "two"}) {
      std::byte* const data = free.put(counted(1000, 1 + rank.rank).data(), 4000);
      hvrun_request fast =
          pair_request(sends ? HVRUN_SEND : HVRUN_RECEIVE, name, 1 - rank.rank, &extent, data);
      free.place(&fast);
      const Status status = rank.run(fast);
      expect(status.ok(), status.message);
      expect(free.values<std::int32_t>(data, 1000) == counted(1000, 1), name);
    }
    busy.let_go();
    for (const std::uint64_t handle : handles) {
      expect(rank.wait(handle).ok(), "what was slow");
      rank.context.release(handle);
    }
    expect(busy.values<std::int32_t>(late, 1000) == counted(1000, 2), "slow");
    expect(busy.values<std::int32_t>(other, 1)[0] == 10, "a sum");
  });
}

TEST_CASE("a copy that fails under a send ends the job in words, on both ranks") {
  // Of pinned memory more than any before, so that it is made anew.
  const std::pair<const char*, std::size_t> faults[] = {{"cuMemcpyDtoHAsync_v2", 1000},
                                                        {"cuMemHostAlloc", 5000000}};
  for (const auto& [function, count] : faults) {
    const std::string name = function;
    CAPTURE(name);
    const std::size_t bytes = count * sizeof(std::int32_t);
    const auto extent = static_cast<std::int64_t>(count);
    JobOptions options = in_shape({2});
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      Gpu gpu(rank.rank);
      std::vector<std::int32_t> mine(count);
      std::byte* const data = gpu.put(mine.data(), bytes);
      (void)gpu.get(data, 0);
      Status status = rank.run(barrier_request());  // rank 0's end may come first
      if (rank.rank == 0) Gpu::set_faults(name + "@1=" + std::to_string(kPairLaunchFailed));
      const bool sends = rank.rank == 0;
      hvrun_request request = pair_request(sends ? HVRUN_SEND : HVRUN_RECEIVE, "x", 1 - rank.rank,
                                           &extent, sends ? static_cast<void*>(data) : mine.data());
      if (sends) gpu.place(&request);
      if (status.ok()) status = rank.run(request);
      if (sends) Gpu::set_faults("");
      rank.context.shutdown();
      expect(status.message.find("719") != std::string::npos,
             "rank " + std::to_string(rank.rank) + ": " + status.message);
    });
  }
}

TEST_SUITE_END();
