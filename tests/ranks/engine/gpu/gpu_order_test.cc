// Who carries what lies on GPUs: HVRUN_BACKEND's own order.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kOrderCount = 1000;

// What NCCL is called for an average on three GPUs.
int calls_with(const std::string& backend) {
  const int before = Gpu::nccl_calls("ncclGetUniqueId") + Gpu::nccl_calls("ncclAllReduce");
  JobOptions options = in_shape({3});
  options.environment.set("HVRUN_BACKEND", backend);
  run_job(options, [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::vector<float> values(kOrderCount, static_cast<float>(rank.rank + 1));
    std::byte* const memory = gpu.put(values.data(), values.size() * sizeof(float));
    hvrun_request request = allreduce_request("average", &kOrderCount, memory, memory);
    request.reduction = HVRUN_AVERAGE;
    gpu.place(&request);
    const Status status = rank.run(request);
    expect(status.ok(), status.message);
    expect(gpu.values<float>(memory, kOrderCount) == std::vector<float>(kOrderCount, 2), "average");
  });
  return Gpu::nccl_calls("ncclGetUniqueId") + Gpu::nccl_calls("ncclAllReduce") - before;
}

}  // namespace

TEST_SUITE_BEGIN("nccl");

TEST_CASE("NCCL carries what lies on GPUs where it is named before native, and else nothing") {
  for (const std::string backend : {"nccl,native", "nccl"}) {
    CAPTURE(backend);
    CHECK(calls_with(backend) >= 4);
  }
  for (const std::string backend : {"native", "native,nccl"}) {
    CAPTURE(backend);
    CHECK(calls_with(backend) == 0);
  }
}

TEST_SUITE_END();
