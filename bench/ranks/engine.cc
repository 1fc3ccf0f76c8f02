// Times what programs call, hvrun.h: collectives through the engine and its negotiation, sends and
// receives, lists of gradients, one process set beside another that stands still, and hvrun_init.
// Started by hvrun or by an MPI's mpirun.
// SPDX-License-Identifier: Apache-2.0
#include <hvrun/hvrun.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/ranks/gradients.h"
#include "bench/ranks/timing.h"

namespace {

void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", hvrun_rank(nullptr), hvrun_status_name(status),
               hvrun_last_error());
  ::_exit(1);
}

hvrun_operation operation_of(const std::string& name) {
  if (name == "allreduce") return HVRUN_ALLREDUCE;
  if (name == "allgather") return HVRUN_ALLGATHER;
  if (name == "broadcast") return HVRUN_BROADCAST;
  return name == "alltoall" ? HVRUN_ALLTOALL : HVRUN_REDUCESCATTER;
}

hvrun_handle enqueue(const hvrun_request& request) {
  hvrun_handle handle = HVRUN_NO_HANDLE;
  check(hvrun_enqueue(nullptr, &request, &handle));
  return handle;
}

void finish(hvrun_handle handle) {
  check(hvrun_wait(nullptr, handle, -1, nullptr));
  check(hvrun_release(nullptr, handle));
}

// Both asked for at once.
void exchange(const bench::Operation& operation, const float* input, float* output) {
  const std::int64_t count[] = {static_cast<std::int64_t>(operation.whole)};
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.type = HVRUN_FLOAT32;
  request.name = "exchanged";
  request.root = operation.other();
  request.ndim = 1;
  request.shape = count;
  request.operation = HVRUN_RECEIVE;
  request.output = output;
  const hvrun_handle received = enqueue(request);
  request.operation = HVRUN_SEND;
  request.input = input;
  request.output = nullptr;
  const hvrun_handle sent = enqueue(request);
  finish(received);
  finish(sent);
}

void run(const bench::Operation& operation, const float* input, float* output, int root) {
  if (operation.name == "exchange") return exchange(operation, input, output);
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = operation_of(operation.name);
  request.type = HVRUN_FLOAT32;
  // A root belongs to what a name stands for: one name for each keeps the negotiation short.
  static const std::string names[] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
  request.name = names[root % 8].c_str();
  request.root = root;
  const auto part = static_cast<std::int64_t>(operation.part);
  const std::int64_t rows[] = {operation.ranks, part};
  const std::int64_t flat[] = {static_cast<std::int64_t>(operation.input_count())};
  const bool has_rows = operation.name == "alltoall" || operation.name == "reducescatter";
  request.ndim = has_rows ? 2 : 1;
  request.shape = has_rows ? rows : flat;
  request.input = input;
  request.output = output;
  request.output_bytes = operation.output_count() * sizeof(float);
  finish(enqueue(request));
}

bench::Memory shared_memory() {
  bench::Memory memory;
  memory.take = [](std::size_t bytes) {
    void* piece = nullptr;
    check(hvrun_alloc(nullptr, bytes, &piece));
    return piece;
  };
  memory.give_back = [](void* piece) { check(hvrun_free(piece)); };
  return memory;
}

bench::Calls calls_of_engine(const bench::Options& options) {
  bench::Calls calls;
  if (options.shared) calls.memory = shared_memory();
  calls.barrier = [] { check(hvrun_barrier(nullptr)); };
  calls.run = run;
  calls.take_greatest = [](double* values, std::size_t count) {
    check(hvrun_allreduce(nullptr, "greatest", values, values, static_cast<int64_t>(count),
                          HVRUN_FLOAT64, HVRUN_MAX));
  };
  calls.exit = [](int code) { ::_exit(code); };
  return calls;
}

// All gradients of a step, as backward yields them: the last layer's first. From the first enqueue
// to the end of the last wait.
void time_gradients(const bench::Calls& calls, const bench::Options& options) {
  const std::vector<bench::Gradient> gradients = bench::read_gradients(options.gradients);
  std::vector<std::unique_ptr<bench::Buffer>> buffers;
  std::size_t bytes = 0;
  for (const bench::Gradient& gradient : gradients) {
    buffers.push_back(std::make_unique<bench::Buffer>(
        gradient.elements(), static_cast<float>(hvrun_rank(nullptr) + 1), calls.memory));
    bytes += gradient.elements() * sizeof(float);
  }
  const auto step = [&](int) {
    std::vector<hvrun_handle> handles;
    for (std::size_t i = gradients.size(); i-- > 0;) {
      hvrun_request request = HVRUN_REQUEST_INIT;
      request.operation = HVRUN_ALLREDUCE;
      request.type = HVRUN_FLOAT32;
      request.reduction = HVRUN_AVERAGE;
      request.name = gradients[i].name.c_str();
      request.ndim = static_cast<std::int32_t>(gradients[i].shape.size());
      request.shape = gradients[i].shape.data();
      request.input = request.output = buffers[i]->data();
      handles.push_back(enqueue(request));
    }
    for (const hvrun_handle handle : handles) finish(handle);
  };
  const auto seconds = bench::repeat_for(
      calls, options.budget_seconds, [] {}, step);
  const float mean = static_cast<float>(hvrun_size(nullptr) + 1) / 2;
  for (const auto& buffer : buffers)
    if ((*buffer)[0] != mean || (*buffer)[buffer->size() - 1] != mean) {
      std::fprintf(stderr, "rank %d: a wrong mean of gradients\n", hvrun_rank(nullptr));
      calls.exit(1);
    }
  if (hvrun_rank(nullptr) == 0)
    bench::print(options, "hvrun", "gradients", hvrun_size(nullptr), bytes, seconds);
}

hvrun_request small_request(const char* name, uint32_t set, float* value) {
  static const std::int64_t one[] = {1};
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_FLOAT32;
  request.name = name;
  request.process_set = set;
  request.ndim = 1;
  request.shape = one;
  request.input = request.output = value;
  return request;
}

// Median seconds of a 4-byte allreduce among ranks 0 and 1, as rank 0 sees it.
double latency_in(uint32_t set, double budget_seconds) {
  std::vector<double> seconds;
  const int repetitions = static_cast<int>(budget_seconds / 20e-6);
  for (int i = 0; i < repetitions; ++i) {
    float value = 0;
    const hv::TimePoint start = hv::now();
    finish(enqueue(small_request("quick", set, &value)));
    seconds.push_back(hv::seconds_since(start));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Three ranks: 0 and 1 work in one set, while 0 waits in another for rank 2, which sleeps. Rank 0
// prints its set's latency beside that, and before.
void time_beside_stalled_set(const bench::Options& options) {
  const int rank = hvrun_rank(nullptr);
  if (hvrun_size(nullptr) != 3) bench::usage("bench_engine --stalled (with 3 ranks)");
  uint32_t busy = 0, stalled = 0;
  const std::int32_t busy_ranks[] = {0, 1}, stalled_ranks[] = {0, 2};
  check(hvrun_process_set_add(nullptr, busy_ranks, 2, &busy));
  check(hvrun_process_set_add(nullptr, stalled_ranks, 2, &stalled));
  const auto sleep = [&] {
    const timespec pause = {static_cast<time_t>(options.stalled), 0};
    ::nanosleep(&pause, nullptr);
  };
  float value = 1;
  double alone = 0, beside = 0;
  if (rank == 2) {
    sleep();
    sleep();
    finish(enqueue(small_request("stalled", stalled, &value)));
  } else {
    latency_in(busy, options.budget_seconds / 4);
    alone = latency_in(busy, options.budget_seconds);
    const hvrun_handle waiting =
        rank == 0 ? enqueue(small_request("stalled", stalled, &value)) : HVRUN_NO_HANDLE;
    beside = latency_in(busy, options.budget_seconds);
    if (rank == 0 && hvrun_poll(nullptr, waiting) != HVRUN_IN_PROGRESS) {
      std::fprintf(stderr, "the stalled set went on before the other one was measured\n");
      ::_exit(1);
    }
    if (rank == 0) finish(waiting);
  }
  check(hvrun_barrier(nullptr));
  if (rank == 0)
    std::printf("{\"alone_us\": %.3f, \"beside_us\": %.3f}\n", alone * 1e6, beside * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse(argc, argv);
  const hv::TimePoint start = hv::now();
  check(hvrun_init(nullptr, nullptr));
  double init_seconds = hv::seconds_since(start);
  const bench::Calls calls = calls_of_engine(options);
  if (options.pin) bench::pin_to_core(hvrun_local_rank(nullptr));
  if (options.init) {
    calls.take_greatest(&init_seconds, 1);
    if (hvrun_rank(nullptr) == 0)
      bench::print(options, "hvrun", "init", hvrun_size(nullptr), 0, {init_seconds});
  } else if (options.stalled > 0) {
    time_beside_stalled_set(options);
  } else if (!options.gradients.empty()) {
    time_gradients(calls, options);
  } else {
    bench::time_all(calls, options, "hvrun", hvrun_size(nullptr), hvrun_rank(nullptr));
  }
  check(hvrun_shutdown(nullptr));
}
