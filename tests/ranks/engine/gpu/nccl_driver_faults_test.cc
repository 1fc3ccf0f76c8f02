// Every call of CUDA's driver fails once while NCCL carries: the ranks end with an error in words,
// or with right results, and nobody hangs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kLaunchFailed = 719, kDriverOutOfMemory = 2;
constexpr std::int64_t kDriverFaultCount = 5000;

struct DriverFault {
  const char* function;
  int call;
  int result = kLaunchFailed;
};

// What is done once a process comes first.
std::vector<DriverFault> faults() {
  std::vector<DriverFault> all{{"cuModuleLoadData", 1}, {"cuModuleGetFunction", 1}};
  const std::pair<const char*, int> often[] = {
      {"cuEventRecord", 14},       {"cuStreamWaitEvent", 14},  {"cuLaunchKernel", 4},
      {"cuCtxPushCurrent_v2", 30}, {"cuEventQuery", 4},        {"cuStreamCreateWithPriority", 3},
      {"cuDeviceGetUuid_v2", 1},   {"cuMemcpyDtoDAsync_v2", 2}};
  for (const auto& [function, calls] : often)
    for (int call = 1; call <= calls; ++call) all.push_back({function, call});
  for (int call = 1; call <= 2; ++call) all.push_back({"cuMemAlloc_v2", call, kDriverOutOfMemory});
  return all;
}

// Two tensors that are fused, and one that is not, each in its own memory.
struct Tensors {
  Tensors(Gpu& gpu, int rank)
      : of(gpu), mine(static_cast<std::size_t>(kDriverFaultCount), static_cast<float>(rank + 1)) {
    for (std::byte*& one : memory) one = gpu.put(mine.data(), mine.size() * sizeof(float));
  }
  // Once, of the first `count`; the first error.
  Status sum(Rank& rank, std::size_t count) {
    Status status;
    std::vector<std::uint64_t> handles;
    for (std::size_t i = 0; i < count; ++i) {
      hvrun_request request = allreduce_request(names[i], &kDriverFaultCount, memory[i], memory[i]);
      request.reduction = HVRUN_AVERAGE;
      request.group = count > 1 ? 7 : 0;
      request.group_size = count > 1 ? static_cast<std::uint32_t>(count) : 0;
      of.place(&request);
      std::uint64_t handle = 0;
      status = rank.enqueue(request, &handle);
      if (!status.ok()) return status;  // the others of its group wait for it
      handles.push_back(handle);
    }
    for (const std::uint64_t handle : handles) {
      const Status own = rank.wait(handle);
      if (status.ok()) status = own;
    }
    return status;
  }
  bool are(float value) const {
    for (const std::byte* const one : memory)
      if (of.values<float>(one, kDriverFaultCount) != std::vector<float>(kDriverFaultCount, value))
        return false;
    return true;
  }

  Gpu& of;
  std::vector<float> mine;
  std::byte* memory[2] = {};
  static constexpr const char* names[] = {"v", "w"};
};

}  // namespace

TEST_CASE("a call of the driver that fails beside NCCL ends the job in words, and no wrong result" *
          doctest::test_suite("nccl")) {
  int ended = 0;  // jobs, by a fault
  for (const DriverFault& fault : faults()) {
    const std::string function = fault.function;
    CAPTURE(function);
    CAPTURE(fault.call);
    std::atomic<int> told{0}, failed{0};
    JobOptions options = in_shape({3});
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      Gpu gpu(rank.rank);
      Tensors tensors(gpu, rank.rank);
      (void)gpu.get(nullptr, 0);
      expect(rank.run(barrier_request()).ok(), "before");
      if (rank.rank == 0)
        Gpu::set_faults(function + "@" + std::to_string(fault.call) + "=" +
                        std::to_string(fault.result));
      expect(rank.run(barrier_request()).ok(), "between");
      rank.at(function + "@" + std::to_string(fault.call));
      Status status = tensors.sum(rank, 2);
      if (status.ok()) status = tensors.sum(rank, 1);
      if (status.ok()) status = rank.run(barrier_request());
      if (!status.ok()) ++failed;
      if (status.message.find("GPU ") != std::string::npos) ++told;
      rank.at("leaving after " + function + "@" + std::to_string(fault.call));
      rank.context.shutdown();
      Gpu::set_faults("");
      rank.at("waiting for the stream after " + function + "@" + std::to_string(fault.call));
      if (status.ok()) expect(tensors.are(2), "a wrong result");
      (void)gpu.get(nullptr, 0);  // whatever its stream waits for comes, or the test hangs
    });
    Gpu::set_faults("");
    CHECK((failed == 0 || told > 0));
    if (failed > 0) ++ended;
  }
  CHECK(ended >= 20);
}
