// A rank's tensors on several of its GPUs, where NCCL carries, which has one of each rank: they are
// refused in words, and nobody waits for ever or is told of sums that have not come.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kDeviceCount = 1000;
constexpr const char* kWords = "this rank's tensors of the process set, which NCCL carries, have";

// One rank's tensor on one of its GPUs.
struct DeviceTensor {
  DeviceTensor(Gpu& gpu, int rank)
      : of(gpu), ones(static_cast<std::size_t>(kDeviceCount), static_cast<float>(rank + 1)) {
    memory = gpu.put(ones.data(), ones.size() * sizeof(float));
  }
  hvrun_request request(const char* name) const {
    hvrun_request one = allreduce_request(name, &kDeviceCount, memory, memory);
    of.place(&one);
    return one;
  }
  bool is(float sum) { return of.values<float>(memory, ones.size()) == all(sum); }
  static std::vector<float> all(float sum) {
    return std::vector<float>(static_cast<std::size_t>(kDeviceCount), sum);
  }

  Gpu& of;
  std::vector<float> ones;
  std::byte* memory;
};

JobOptions three_device_ranks() {
  JobOptions options = in_shape({3});
  options.deadline = std::chrono::seconds(60);
  return options;
}

// A GPU of the stand-in's eight that is no rank's first.
int second_of(const Rank& rank) { return rank.rank + rank.size; }

}  // namespace

TEST_SUITE_BEGIN("nccl");

TEST_CASE("a tensor on a rank's second GPU is refused there, and the job goes on") {
  for (const int only : {-1, 0, 1}) {  // -1: all ranks have one
    CAPTURE(only);
    std::atomic<int> refused{0};
    run_job(three_device_ranks(), [&](Rank& rank) {
      Gpu first(rank.rank), second(second_of(rank));
      DeviceTensor here(first, rank.rank), there(second, rank.rank);
      expect(rank.run(here.request("w")).ok() && here.is(6), "before");
      if (only < 0 || rank.rank == only) {
        const Status status = rank.run(there.request("v"));
        if (status.code == StatusCode::kUnsupported &&
            status.message.find(kWords) != std::string::npos &&
            status.message.starts_with("tensor 'v': "))
          ++refused;
      }
      DeviceTensor again(first, rank.rank);
      const Status after = rank.run(again.request("v"));
      expect(after.ok(), after.message);
      expect(again.is(6), "a wrong sum");
    });
    CHECK(refused == (only < 0 ? 3 : 1));
  }
}

TEST_CASE("what NCCL does not carry may lie on any GPU of a rank, and so in another set") {
  run_job(three_device_ranks(), [](Rank& rank) {
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 1}, &set).ok(), "add");
    Gpu first(rank.rank), second(second_of(rank));
    DeviceTensor here(first, rank.rank), adasum(second, 0), of_set(second, rank.rank);
    expect(rank.run(here.request("w")).ok() && here.is(6), "before");
    hvrun_request request = adasum.request("a");
    request.reduction = HVRUN_ADASUM;
    Status status = rank.run(request);
    expect(status.ok(), status.message);
    expect(adasum.is(1), "equal ones");
    request = of_set.request("s");
    request.process_set = set;
    if (rank.rank < 2) status = rank.run(request);
    expect(status.ok(), status.message);
    expect(rank.rank == 2 || of_set.is(3), "the set's sum");
  });
}

// They are enqueued before it is known that NCCL carries them. One after the other, so that all
// ranks begin with those on the same GPU.
TEST_CASE("tensors on two GPUs of a rank that are in flight at first end the job on all ranks") {
  for (const int only : {-1, 1}) {
    CAPTURE(only);
    std::atomic<int> told{0};
    JobOptions options = three_device_ranks();
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      Gpu first(rank.rank), second(second_of(rank));
      DeviceTensor here(first, rank.rank), there(second, rank.rank);
      const bool has_two = only < 0 || rank.rank == only;
      std::uint64_t handles[2] = {};
      expect(rank.enqueue(here.request("w"), &handles[0]).ok(), "w");
      expect(rank.enqueue((has_two ? there : here).request("v"), &handles[1]).ok(), "v");
      (void)rank.wait(handles[0]);
      Status status = rank.wait(handles[1]);
      while (status.ok()) status = rank.run(barrier_request());
      if (status.message.find(kWords) != std::string::npos) ++told;
      rank.context.shutdown();
    });
    CHECK(told == 3);
    CHECK(Gpu::nccl_left() == 0);
  }
}

TEST_SUITE_END();
