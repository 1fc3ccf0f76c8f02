// Every call of CUDA's driver fails once: the ranks end with an error in words, or with right
// results, and nobody hangs.
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

constexpr int kGpuLaunchFailed = 719, kOutOfMemory = 2;

struct GpuFault {
  const char* function;
  int call;
  int result;
  std::size_t count = 1000;  // elements: more than any before, so that their room is made anew
};

// An event that is asked for before any memory waits for one that has failed: first.
const std::vector<GpuFault> kGpuFaults{
    {"cuEventQuery", 1, kGpuLaunchFailed},         {"cuCtxPushCurrent_v2", 1, kGpuLaunchFailed},
    {"cuStreamIsCapturing", 1, kGpuLaunchFailed},  {"cuEventRecord", 1, kGpuLaunchFailed},
    {"cuEventRecord", 3, kGpuLaunchFailed},        {"cuEventRecord", 5, kGpuLaunchFailed},
    {"cuMemHostAlloc", 1, kOutOfMemory, 3000000},  {"cuMemcpyDtoHAsync_v2", 1, kGpuLaunchFailed},
    {"cuMemcpyDtoHAsync_v2", 2, kGpuLaunchFailed}, {"cuMemcpyHtoDAsync_v2", 1, kGpuLaunchFailed}};

bool is_right(const std::vector<float>& values, int size) {
  return values == std::vector<float>(values.size(), static_cast<float>(size * (size + 1) / 2));
}

}  // namespace

TEST_CASE("a call of CUDA's driver that fails ends the job with its words, and no wrong result" *
          doctest::test_suite("host")) {
  for (const GpuFault& fault : kGpuFaults) {
    const std::string function = fault.function;
    CAPTURE(function);
    CAPTURE(fault.call);
    std::atomic<int> told{0};
    JobOptions options = in_shape({3});
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      Gpu gpu(rank.rank);
      const std::vector<float> mine(fault.count, static_cast<float>(rank.rank + 1));
      std::byte* const memory = gpu.put(mine.data(), fault.count * sizeof(float));
      (void)gpu.get(memory, 0);
      expect(rank.run(barrier_request()).ok(), "before");
      if (rank.rank == 0)
        Gpu::set_faults(function + "@" + std::to_string(fault.call) + "=" +
                        std::to_string(fault.result));
      expect(rank.run(barrier_request()).ok(), "between");
      const auto extent = static_cast<std::int64_t>(fault.count);
      hvrun_request request = allreduce_request("w", &extent, memory, memory);
      gpu.place(&request);
      const Status status = rank.run(request);
      if (status.message.find("GPU ") != std::string::npos) ++told;
      // Whoever has failed leaves, as a program does whose exception nobody catches.
      if (!status.ok()) return rank.context.shutdown();
      (void)rank.run(barrier_request());
      rank.context.shutdown();
      Gpu::set_faults("");
      expect(is_right(gpu.values<float>(memory, fault.count), rank.size), "a wrong result");
    });
    Gpu::set_faults("");
    CHECK(told > 0);
  }
}
