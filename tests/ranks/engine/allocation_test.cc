// Memory on GPUs that all ranks of a set have allocated together, and allreduces of what lies in
// it: by NCCL as a window where HVRUN_NCCL_WINDOWS=1 makes some, whose stand-in refuses a reduction
// that some ranks have in one and others have not; else as in any other memory.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kAllocationCount = 10000;

hvrun_request allocation(const Gpu& gpu, const char* name, const std::int64_t* count) {
  hvrun_request request = allreduce_request(name, count, nullptr, nullptr);
  request.operation = HVRUN_ALLOCATE;
  request.reduction = static_cast<hvrun_reduction>(0);
  gpu.place(&request);
  return request;
}

// kCount floats, all of which are the rank's number plus one.
struct Allocated {
  Allocated(const Rank& rank, Gpu& gpu, const char* name = "memory", std::uint32_t set = 0) {
    hvrun_request request = allocation(gpu, name, &kAllocationCount);
    request.process_set = set;
    const Status status = rank.run(request, &operation);
    expect(status.ok(), status.message);
    expect(operation->result_bytes == kAllocationCount * sizeof(float), "its size");
    gpu.fill(operation->output, std::vector<float>(kAllocationCount, rank.rank + 1.0f).data(),
             operation->result_bytes);
  }
  std::byte* at(std::int64_t element) const { return operation->output + element * 4; }

  OperationPtr operation;
};

hvrun_request sum(const Gpu& gpu, const std::int64_t* count, std::byte* memory) {
  hvrun_request request = allreduce_request("w", count, memory, memory);
  gpu.place(&request);
  return request;
}

}  // namespace

TEST_CASE("memory that all ranks have allocated is summed in a window, whole and in part") {
  const int before = Gpu::nccl_calls("ncclCommWindowRegister");
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const Allocated memory(rank, gpu);
    const std::int64_t part = 100;
    for (int step = 0; step < 3; ++step)
      expect(rank.run(sum(gpu, &part, memory.at(64))).ok(), "a part of it");
    expect(rank.run(sum(gpu, &kAllocationCount, memory.at(0))).ok(), "all of it");
    std::vector<float> expected(kAllocationCount, 6.0f);
    std::fill_n(expected.begin() + 64, part, 6.0f * 27);
    expect(gpu.values<float>(memory.at(0), kAllocationCount) == expected, "the sums");
  });
  // And no other, to copy into.
  const int registered = Gpu::nccl_calls("ncclCommWindowRegister") - before;
  CHECK(registered == (Gpu::has_windows() && !Gpu::is_real() ? 3 : 0));
  CHECK(Gpu::nccl_left() == 0);
}

TEST_CASE("a sum in a window that is scaled, compressed or fused goes through the ranks' room") {
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const Allocated memory(rank, gpu), other(rank, gpu, "other memory");
    hvrun_request compressed = sum(gpu, &kAllocationCount, memory.at(0));
    compressed.compression = HVRUN_COMPRESSION_FP16;
    compressed.postscale = 2;
    std::uint64_t handles[2] = {};
    hvrun_request both[] = {compressed, sum(gpu, &kAllocationCount, other.at(0))};
    both[1].name = "v";
    for (int i = 0; i < 2; ++i) {
      both[i].group = 1;
      both[i].group_size = 2;
      expect(rank.enqueue(both[i], &handles[i]).ok(), "enqueue");
    }
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
    expect(gpu.values<float>(memory.at(0), kAllocationCount) ==
               std::vector<float>(kAllocationCount, 12),
           "scaled");
    expect(
        gpu.values<float>(other.at(0), kAllocationCount) == std::vector<float>(kAllocationCount, 6),
        "plain");
  });
}

TEST_CASE("who has joined takes part in a window's sums with zeros") {
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const Allocated memory(rank, gpu);
    if (rank.rank != 1)
      for (int step = 0; step < 2; ++step)
        expect(rank.run(sum(gpu, &kAllocationCount, memory.at(0))).ok(), "a sum");
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    expect(rank.run(join).ok(), "join");
    expect(rank.run(sum(gpu, &kAllocationCount, memory.at(0))).ok(), "all are there again");
    // 1 + 3, then 4 + 4, then 8 + 2 + 8.
    expect(gpu.values<float>(memory.at(0), kAllocationCount) ==
               std::vector<float>(kAllocationCount, 18),
           "the sums");
  });
}

TEST_CASE("ranks whose tensors lie elsewhere in a window, or in none, are told by name") {
  std::atomic<int> told{0};
  run_job(in_shape({3}), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    const Allocated memory(rank, gpu);
    const std::vector<float> ones(100, 1.0f);
    std::byte* const elsewhere = gpu.put(ones.data(), ones.size() * sizeof(float));
    const std::int64_t part = 100;
    const Status status =
        rank.run(sum(gpu, &part, rank.rank == 2 ? elsewhere : memory.at(rank.rank * 16)));
    if (!Gpu::has_windows()) return expect(status.ok(), status.message);
    if (status.message.find("rank 1 has float32 [100] at byte 64 of allocation 1, rank 2 has "
                            "float32 [100] in no memory from HVRUN_ALLOCATE") != std::string::npos)
      ++told;
    expect(rank.run(sum(gpu, &part, memory.at(0))).ok(), "the job goes on");
  });
  CHECK(told == (Gpu::has_windows() ? 3 : 0));
}

TEST_CASE("in a window only an allreduce in place is at home") {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const Allocated memory(rank, gpu);
    const std::vector<float> ones(kAllocationCount, 1.0f);
    std::byte* const elsewhere = gpu.put(ones.data(), ones.size() * sizeof(float));
    hvrun_request outward = sum(gpu, &kAllocationCount, memory.at(0));
    outward.output = elsewhere;
    hvrun_request inward = sum(gpu, &kAllocationCount, elsewhere);
    inward.output = memory.at(0);
    hvrun_request beyond = sum(gpu, &kAllocationCount, memory.at(1));
    hvrun_request broadcast = sum(gpu, &kAllocationCount, memory.at(0));
    broadcast.operation = HVRUN_BROADCAST;
    broadcast.reduction = static_cast<hvrun_reduction>(0);
    for (const hvrun_request& request : {outward, inward, beyond, broadcast}) {
      if (!Gpu::has_windows()) break;
      std::uint64_t handle = 0;
      const Status status = rank.enqueue(request, &handle);
      expect(status.code == StatusCode::kUnsupported, "refused");
      expect(status.message.find("try: a copy of it") != std::string::npos, status.message);
    }
    expect(rank.run(sum(gpu, &kAllocationCount, memory.at(0))).ok(), "an allreduce in place");
  });
}

TEST_CASE("what a set has in a window is any memory to others, and outlives the set") {
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 2}, &set).ok(), "add");
    OperationPtr kept;
    if (rank.rank != 1) {
      const Allocated memory(rank, gpu, "memory", set);
      hvrun_request request = sum(gpu, &kAllocationCount, memory.at(0));
      request.process_set = set;
      expect(rank.run(request).ok(), "a sum of the set");
      kept = memory.operation;
    }
    const std::vector<float> zeros(kAllocationCount, 0.0f);
    std::byte* const elsewhere = gpu.put(zeros.data(), zeros.size() * sizeof(float));
    std::byte* const mine = kept != nullptr ? kept->output : elsewhere;
    expect(rank.run(sum(gpu, &kAllocationCount, mine)).ok(), "a sum of all");
    expect(rank.context.remove_process_set(set).ok(), "remove");
    expect(rank.run(sum(gpu, &kAllocationCount, mine)).ok(), "a sum of all, without the set");
    expect(gpu.values<float>(mine, kAllocationCount) == std::vector<float>(kAllocationCount, 24),
           "the sums");
  });
  CHECK(Gpu::nccl_left() == 0);
}

TEST_CASE("a window for tensors that cannot be made ends the job with the reason on every rank") {
  if (!Gpu::has_windows()) return;
  for (const char* const function : {"ncclMemAlloc", "ncclCommWindowRegister"}) {
    CAPTURE(function);
    std::atomic<int> told{0};
    JobOptions options = in_shape({3});
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      Gpu gpu(rank.rank);
      if (rank.rank == 0) Gpu::set_nccl_faults(std::string(function) + "@1=3");
      expect(rank.run(barrier_request()).ok(), "before");
      const Status status = rank.run(allocation(gpu, "memory", &kAllocationCount));
      if (status.message.find("try: HVRUN_NCCL_WINDOWS=0") != std::string::npos) ++told;
      rank.context.shutdown();
      (void)gpu.get(nullptr, 0);
    });
    Gpu::set_nccl_faults("");
    CHECK(told == 3);
    CHECK(Gpu::nccl_left() == 0);
  }
}

TEST_CASE("memory for ranks to allocate is on GPUs, and is the result") {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    hvrun_request request = allocation(gpu, "memory", &kAllocationCount);
    std::uint64_t handle = 0;
    request.device = 0;
    request.stream = nullptr;
    expect(rank.enqueue(request, &handle).message.find("try: hvrun_alloc") != std::string::npos,
           "of the host");
    gpu.place(&request);
    request.output = gpu.put(nullptr, kAllocationCount * 4);
    expect(rank.enqueue(request, &handle).code == StatusCode::kArgument, "into an output");
    const std::int64_t nothing = 0;
    OperationPtr empty;
    expect(rank.run(allocation(gpu, "nothing", &nothing), &empty).ok(), "of no bytes");
    expect(empty->result_bytes == 0, "no bytes");
  });
}
