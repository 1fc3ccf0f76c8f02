// Tensors in a GPU's memory, over the backend for the host's; the GPUs are stand-ins whose work
// comes late and whose memory the host cannot touch.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/gpu.h"

#include <doctest/doctest.h>

#include <numeric>
#include <thread>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::vector<JobShape> kGpuShapes{{1}, {2}, {3}, {2, 2}};

template <typename T>
std::vector<T> filled(std::size_t count, int rank) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<std::size_t>(rank + 1) * (1 + i % 7));
  return values;
}

template <typename T>
std::byte* put(Gpu& gpu, const std::vector<T>& values) {
  return gpu.put(values.data(), values.size() * sizeof(T));
}

void run_on_gpu(Rank& rank, const Gpu& gpu, hvrun_request request,
                OperationPtr* operation = nullptr) {
  gpu.place(&request);
  rank.at(request.name);
  const Status status = rank.run(request, operation);
  expect(status.ok(), status.message);
}

float sum_at(int size, std::size_t i) {
  return static_cast<float>(size * (size + 1) / 2) * static_cast<float>(1 + i % 7);
}

void expect_sum(const std::vector<float>& values, int size, const std::string& what) {
  for (std::size_t i = 0; i < values.size(); ++i)
    expect(values[i] == sum_at(size, i), what + " at " + std::to_string(i));
}

}  // namespace

TEST_CASE("an allreduce of GPUs' memory reads what streams had been given, in place and not") {
  for (const JobShape& shape : kGpuShapes) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      Gpu gpu(rank.rank);
      const std::size_t count = 100003;
      const auto extent = static_cast<std::int64_t>(count);
      const auto input = filled<float>(count, rank.rank);
      std::byte* const from = put(gpu, input);
      std::byte* const to = gpu.put(nullptr, count * sizeof(float));
      run_on_gpu(rank, gpu, allreduce_request("apart", &extent, from, to));
      expect_sum(gpu.values<float>(to, count), rank.size, "apart");
      expect(gpu.values<float>(from, count) == input, "the input has changed");
      run_on_gpu(rank, gpu, allreduce_request("in place", &extent, from, from));
      expect_sum(gpu.values<float>(from, count), rank.size, "in place");
    });
  }
}

TEST_CASE("many small ones are fused, host's and GPUs' apart") {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 33;
    std::vector<std::vector<float>> on_host(20, filled<float>(33, rank.rank));
    std::vector<std::byte*> on_gpu;
    std::vector<std::uint64_t> handles;
    for (std::size_t i = 0; i < on_host.size(); ++i) {
      on_gpu.push_back(put(gpu, on_host[i]));
      const std::string number = std::to_string(i), host = "host " + number,
                        there = "gpu " + number;
      hvrun_request request =
          allreduce_request(there.c_str(), &extent, on_gpu.back(), on_gpu.back());
      gpu.place(&request);
      handles.push_back(0);
      expect(rank.enqueue(request, &handles.back()).ok(), there);
      handles.push_back(0);
      float* const place = on_host[i].data();
      expect(rank.enqueue(allreduce_request(host.c_str(), &extent, place, place), &handles.back())
                 .ok(),
             host);
    }
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
    for (std::size_t i = 0; i < on_host.size(); ++i) {
      expect_sum(on_host[i], rank.size, "host");
      expect_sum(gpu.values<float>(on_gpu[i], 33), rank.size, "GPU");
    }
    expect(rank.context.observation().counters.fused_buckets.value() > 0, "something was fused");
  });
}

// A driver's call takes half a microsecond, and a training step has hundreds of tensors.
TEST_CASE("tensors of a bucket have streams wait once, not each of them" *
          doctest::test_suite("stand-in")) {
  constexpr int kTensors = 50;
  std::atomic<int> most{0};
  run_job(in_shape({2}), [&most](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t count = 100;
    std::vector<std::string> names;
    std::vector<std::byte*> blocks;
    for (int i = 0; i < kTensors; ++i) {
      names.push_back("t" + std::to_string(i));
      blocks.push_back(put(gpu, filled<float>(100, rank.rank)));
    }
    std::vector<std::uint64_t> handles(kTensors);
    for (int step = 0; step < 12; ++step) {
      expect(rank.run(barrier_request()).ok(), "before");
      const int before = Gpu::calls("cuStreamWaitEvent");
      expect(rank.run(barrier_request()).ok(), "counted");
      for (int i = 0; i < kTensors; ++i) {
        hvrun_request request = allreduce_request(names[i].c_str(), &count, blocks[i], blocks[i]);
        gpu.place(&request);
        expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
      }
      for (const std::uint64_t handle : handles) {
        expect(rank.wait(handle).ok(), "wait");
        rank.context.release(handle);
      }
      expect(rank.run(barrier_request()).ok(), "after");
      if (step > 8) most = std::max(most.load(), Gpu::calls("cuStreamWaitEvent") - before);
    }
  });
  MESSAGE("waits of two ranks for " << kTensors << " tensors: " << most.load());
  CHECK(most < kTensors);
}

// A training that gathers once and sums in place from then on must not keep what it has let go of.
TEST_CASE("a result's memory is given back though nothing is asked for afterwards") {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 1000;
    std::byte* const input = put(gpu, filled<float>(1000, rank.rank));
    hvrun_request request = allreduce_request("gather", &extent, input, nullptr);
    request.operation = HVRUN_ALLGATHER;
    gpu.place(&request);
    std::uint64_t handle = 0;
    expect(rank.enqueue(request, &handle).ok(), "gather");
    expect(rank.wait(handle).ok(), "gather");
    const std::shared_ptr<Accelerator> accelerator = rank.context.find(handle)->accelerator;
    gpu.hold();
    expect(rank.context.release(handle), "release");
    expect(accelerator->keeps_any(), "it is kept while the stream may use it");
    gpu.let_go();
    const TimePoint limit = now() + std::chrono::seconds(60);
    while (accelerator->keeps_any() && now() < limit) std::this_thread::yield();
    expect(!accelerator->keeps_any(), "it has been given back");
  });
}

TEST_CASE("results whose size only negotiation knows lie on the GPU, too") {
  for (const JobShape& shape : kGpuShapes) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      Gpu gpu(rank.rank);
      const std::int64_t extents[] = {rank.rank + 1, 2};
      const std::vector<std::int64_t> mine(static_cast<std::size_t>(2 * (rank.rank + 1)),
                                           rank.rank);
      hvrun_request request = HVRUN_REQUEST_INIT;
      request.operation = HVRUN_ALLGATHER;
      request.name = "gather";
      request.type = HVRUN_INT64;
      request.ndim = 2;
      request.shape = extents;
      request.input = put(gpu, mine);
      OperationPtr gathered;
      run_on_gpu(rank, gpu, request, &gathered);
      std::vector<std::int64_t> expected;
      for (int from = 0; from < rank.size; ++from)
        expected.insert(expected.end(), static_cast<std::size_t>(2 * (from + 1)), from);
      expect(gpu.values<std::int64_t>(gathered->output, expected.size()) == expected, "gather");

      std::vector<std::int64_t> splits(static_cast<std::size_t>(rank.size), 0);
      splits.back() = rank.rank + 1;  // all to the last one
      request.operation = HVRUN_ALLTOALL;
      request.name = "all to all";
      request.splits = splits.data();
      request.split_count = splits.size();
      OperationPtr exchanged;
      run_on_gpu(rank, gpu, request, &exchanged);
      const bool is_last = rank.rank == rank.size - 1;
      if (!is_last) expected.clear();
      expect(exchanged->result_bytes == expected.size() * 8, "bytes of the alltoall");
      expect(gpu.values<std::int64_t>(exchanged->output, expected.size()) == expected, "alltoall");
    });
  }
}

TEST_CASE("an output that lies in the input gets its result when it is not in the way any more") {
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 6;
    std::byte* const memory = put(gpu, filled<float>(6, rank.rank));
    hvrun_request request = allreduce_request("scatter", &extent, memory, memory + sizeof(float));
    request.operation = HVRUN_REDUCESCATTER;
    run_on_gpu(rank, gpu, request);
    const std::vector<float> share = gpu.values<float>(memory + sizeof(float), 2);
    for (std::size_t i = 0; i < 2; ++i)
      expect(share[i] == sum_at(3, static_cast<std::size_t>(2 * rank.rank) + i), "share");

    const std::vector<float> mine(2, static_cast<float>(rank.rank));
    std::byte* const room = gpu.put(nullptr, 6 * sizeof(float));
    std::byte* const input = room + 2 * sizeof(float);
    (void)gpu.get(room, 0);
    const std::int64_t two = 2;
    std::byte* const source = put(gpu, mine);
    request = allreduce_request("there", &two, source, input);
    request.operation = HVRUN_BROADCAST;
    run_on_gpu(rank, gpu, request);
    request = allreduce_request("gather", &two, input, room);
    request.operation = HVRUN_ALLGATHER;
    run_on_gpu(rank, gpu, request);
    expect(gpu.values<float>(room, 6) == std::vector<float>(6, 0.0F), "rows of rank 0, thrice");
  });
}

TEST_CASE("a broadcast and a sparse allreduce of GPUs' memory") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    for (int root = 0; root < rank.size; ++root) {
      const std::int64_t extent = 1000;
      // What fills it comes so late that a result which did not wait for that would be lost.
      for (char byte = 0; rank.rank != root && byte < 30; ++byte) gpu.put(&byte, 1);
      std::byte* const buffer = put(gpu, std::vector<double>(1000, rank.rank));
      hvrun_request request = allreduce_request("b", &extent, rank.rank == root ? buffer : nullptr,
                                                buffer, HVRUN_FLOAT64);
      request.operation = HVRUN_BROADCAST;
      request.root = root;
      run_on_gpu(rank, gpu, request);
      expect(gpu.values<double>(buffer, 1000) == std::vector<double>(1000, root), "broadcast");
    }
    const std::int64_t shape[] = {rank.rank, 2};
    const std::vector<std::int64_t> indices(static_cast<std::size_t>(rank.rank), 7 + rank.rank);
    const std::vector<float> rows(static_cast<std::size_t>(2 * rank.rank),
                                  static_cast<float>(rank.rank));
    hvrun_request request = HVRUN_REQUEST_INIT;
    request.operation = HVRUN_SPARSE_ALLREDUCE;
    request.name = "sparse";
    request.type = HVRUN_FLOAT32;
    request.ndim = 2;
    request.shape = shape;
    request.index_type = HVRUN_INT64;
    request.indices = put(gpu, indices);
    request.input = put(gpu, rows);
    OperationPtr result;
    run_on_gpu(rank, gpu, request, &result);
    expect(gpu.values<std::int64_t>(result->owned_indices.get(), 3) ==
               std::vector<std::int64_t>{8, 9, 9},
           "indices");
    expect(gpu.values<float>(result->output, 6) == std::vector<float>{1, 1, 2, 2, 2, 2}, "rows");
  });
}

TEST_CASE("a rank that has joined gives zeros of the host's") {
  run_job(in_shape({3}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 50;
    if (rank.rank > 0) {
      std::byte* const memory = put(gpu, filled<float>(50, rank.rank));
      run_on_gpu(rank, gpu, allreduce_request("w", &extent, memory, memory));
      const std::vector<float> sums = gpu.values<float>(memory, 50);
      for (std::size_t i = 0; i < sums.size(); ++i)
        expect(sums[i] == 5 * static_cast<float>(1 + i % 7), "sum of two");
    }
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    expect(rank.run(join).ok(), "join");
  });
}

TEST_CASE("ranks whose tensors lie in different kinds of memory are told so" *
          doctest::test_suite("host")) {
  run_job(in_shape({2}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 4;
    std::vector<float> values(4);
    hvrun_request request = allreduce_request("w", &extent, values.data(), values.data());
    if (rank.rank == 1) {
      request.input = request.output = put(gpu, values);
      gpu.place(&request);
    }
    const Status status = rank.run(request);
    expect(status.code == StatusCode::kMismatch, status.message);
    expect(
        status.message.find("rank 0 has float32 [4] in the host's memory, rank 1 has float32 [4] "
                            "on a GPU") != std::string::npos,
        status.message);
  });
}

TEST_CASE("what cannot be done with a GPU's memory is refused where it is asked for" *
          doctest::test_suite("stand-in")) {
  run_job(in_shape({1}), [](Rank& rank) {
    Gpu gpu(rank.rank);
    const std::int64_t extent = 4;
    std::byte* const memory = put(gpu, std::vector<float>(4));
    hvrun_request request = allreduce_request("w", &extent, memory, memory);
    gpu.place(&request);
    const auto refused = [&](StatusCode code, const std::string& words) {
      const Status status = rank.run(request);
      expect(status.code == code && status.message.find(words) != std::string::npos,
             status.message);
    };
    request.device = 1 + Gpu::devices();
    const std::string number = std::to_string(Gpu::devices());
    refused(StatusCode::kArgument,
            "tensor 'w': there is no GPU " + number + ": this process sees " + number);
    request.device = -1;
    refused(StatusCode::kArgument, "device is -1");
    request.device = 0;
    refused(StatusCode::kArgument, "the host has no streams");
    gpu.place(&request);
    gpu.capture(true);
    refused(StatusCode::kUnsupported, "a CUDA graph is being captured from the tensor's stream");
    gpu.capture(false);
    expect(rank.run(request).ok(), "after the capture");
  });
}
