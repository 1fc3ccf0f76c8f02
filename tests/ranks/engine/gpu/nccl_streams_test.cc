// What NCCL's collectives have to do with the program's streams: nobody waits for the GPU, and a
// graph that is captured elsewhere stays whole.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "src/base/symbol.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kStreamCount = 1000;

// What the stand-in for CUDA has beside CUDA's functions.
template <typename Function>
Function* of_stand_in(const char* name) {
  Function* found = nullptr;
  expect(find_function(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name, &found), name);
  return found;
}

std::vector<float> all(float value) {
  return std::vector<float>(static_cast<std::size_t>(kStreamCount), value);
}

std::byte* put_ones(Gpu& gpu) {
  return gpu.put(all(1).data(), static_cast<std::size_t>(kStreamCount) * sizeof(float));
}

hvrun_request sum_request(const Gpu& gpu, const char* name, std::byte* memory) {
  hvrun_request request = allreduce_request(name, &kStreamCount, memory, memory);
  gpu.place(&request);
  return request;
}

JobOptions two_ranks() {
  JobOptions options = in_shape({2});
  options.deadline = std::chrono::seconds(60);
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("nccl");

TEST_CASE("a wait returns while the stream that fills the tensor is still busy") {
  run_job(two_ranks(), [](Rank& rank) {
    Gpu gpu(rank.rank);
    std::byte* const memory = put_ones(gpu);
    gpu.hold();
    for (int again = 0; again < 3; ++again) {
      const Status status = rank.run(sum_request(gpu, "w", memory));
      expect(status.ok(), status.message);
    }
    expect(rank.run(barrier_request()).ok(), "all have waited");
    gpu.let_go();
    expect(gpu.values<float>(memory, static_cast<std::size_t>(kStreamCount)) == all(8), "sum");
  });
}

// Where a GPU has no room for the kernels of both, all GPUs must have begun the same one.
TEST_CASE("a set's work begins on a GPU after another's that was launched before it") {
  run_job(in_shape({3}), [](Rank& rank) {
    const bool is_member = rank.rank < 2;
    Gpu late(rank.rank), other(rank.rank);
    std::byte* const first = put_ones(late);
    std::byte* const second = put_ones(other);
    std::uint32_t set = 0;
    const Status added = rank.context.add_process_set({0, 1}, &set);
    expect(added.ok(), added.message);
    const auto run_both = [&] {
      expect(rank.run(sum_request(late, "first", first)).ok(), "first");
      hvrun_request request = sum_request(other, "second", second);
      request.process_set = set;
      if (is_member) expect(rank.run(request).ok(), "second");
    };
    run_both();
    if (rank.rank == 0) late.hold();
    run_both();
    expect(rank.run(barrier_request()).ok(), "all is launched");
    const TimePoint until = now() + std::chrono::milliseconds(200);
    bool has_begun = false;
    while (rank.rank == 0 && now() < until) has_begun = has_begun || other.is_idle();
    late.let_go();
    expect(!has_begun, "the second has not begun");
    const auto count = static_cast<std::size_t>(kStreamCount);
    expect(late.values<float>(first, count) == all(9), "the sum of all ranks");
    expect(other.values<float>(second, count) == all(is_member ? 4 : 1), "the set's sum");
  });
}

TEST_CASE("a capture on another stream stays whole while NCCL begins and carries") {
  std::atomic<int> whole{0};
  run_job(two_ranks(), [&](Rank& rank) {
    Gpu gpu(rank.rank), captured(rank.rank);
    std::byte* const memory = put_ones(gpu);
    (void)gpu.get(memory, 0);
    expect(rank.run(barrier_request()).ok(), "all have what they need");
    if (rank.rank == 0) captured.capture(true);
    expect(rank.run(barrier_request()).ok(), "it is being captured");
    Status status;
    for (int again = 0; status.ok() && again < 5; ++again)
      status = rank.run(sum_request(gpu, again % 2 == 0 ? "w" : "v", memory));
    expect(status.ok(), status.message);
    expect(rank.run(barrier_request()).ok(), "all have launched");
    if (rank.rank == 0) {
      if (!of_stand_in<decltype(fake_cuda_broke_capture)>("fake_cuda_broke_capture")()) ++whole;
      captured.capture(false);
    }
    expect(rank.run(barrier_request()).ok(), "it has been captured");
    expect(gpu.values<float>(memory, static_cast<std::size_t>(kStreamCount)) == all(32), "sum");
  });
  CHECK(whole == 1);
}

// Else kernels of the backward pass would hold up those that all ranks wait for.
TEST_CASE("every stream of the runtime's own has the highest priority") {
  const auto all_streams = [] { return Gpu::calls("cuStreamCreateWithPriority"); };
  const auto urgent_streams = [] {
    return of_stand_in<decltype(fake_cuda_urgent_streams)>("fake_cuda_urgent_streams")();
  };
  const int all_before = all_streams(), urgent_before = urgent_streams();
  std::atomic<int> callers{0};  // of tests' tensors: what is no request on a GPU has one, too
  run_job(two_ranks(), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    callers += rank.gpu != nullptr ? 2 : 1;
    expect(rank.run(sum_request(gpu, "w", put_ones(gpu))).ok(), "sum");
  });
  const int urgent = urgent_streams() - urgent_before;
  CHECK(urgent >= 2 * 3);  // of the communicators
  CHECK(all_streams() - all_before - urgent == callers.load());
}

// A loss scale may change with each step.
TEST_CASE("NCCL keeps the scaled sums that were used last, and no others") {
  constexpr int kSteps = 40, kKept = 16;
  const auto kept = [] {
    return Gpu::nccl_calls("ncclRedOpCreatePreMulSum") - Gpu::nccl_calls("ncclRedOpDestroy");
  };
  const int before = kept();
  std::atomic<int> most{0}, made_anew{0};
  run_job(two_ranks(), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    const auto sum_scaled = [&](int factor) {
      std::byte* const memory = put_ones(gpu);
      hvrun_request request = sum_request(gpu, "w", memory);
      request.prescale = factor;
      const Status status = rank.run(request);
      expect(status.ok(), status.message);
      expect(gpu.values<float>(memory, static_cast<std::size_t>(kStreamCount)) ==
                 all(2 * static_cast<float>(factor)),
             "scaled by " + std::to_string(factor));
      gpu.take_away(memory);
    };
    for (int step = 0; step < kSteps; ++step) {
      sum_scaled(step + 2);
      sum_scaled(2);  // is always among the last
    }
    expect(rank.run(barrier_request()).ok(), "all are done");
    most = kept() - before;
    const int made = Gpu::nccl_calls("ncclRedOpCreatePreMulSum");
    expect(rank.run(barrier_request()).ok(), "counted");
    for (int step = kSteps - kKept + 1; step < kSteps; ++step) sum_scaled(step + 2);
    sum_scaled(2);
    expect(rank.run(barrier_request()).ok(), "all are done again");
    made_anew = Gpu::nccl_calls("ncclRedOpCreatePreMulSum") - made;
  });
  CHECK(most.load() == 2 * kKept);
  CHECK(made_anew.load() == 0);
}

TEST_SUITE_END();
