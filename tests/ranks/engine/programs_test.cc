// Random programs: many tensors in another order on each rank, against a plain reference.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "tests/ranks/engine/job.h"
#include "tests/ranks/reference.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// One operation of the program; the same on every rank.
struct Planned {
  std::string name;
  CollectiveKind kind;
  ElementType type;
  Reduction reduction;
  int root;
  std::vector<std::int64_t> extents;  // elements by rank; all equal unless it gathers
  std::uint64_t seed;
};

double test_scale() {
  const Environment environment = Environment::of_process();
  return std::atof(environment.get_or("HVRUN_TEST_SCALE", "1").c_str());
}

// Names come again from one window to the next, so that the cache is hit, missed and evicted.
std::vector<Planned> plan_window(std::mt19937_64& random, int size, int window) {
  std::vector<Planned> plan;
  const int count = 1 + static_cast<int>(random() % 20);
  for (int i = 0; i < count; ++i) {
    const bool repeats = random() % 4 != 0;
    Planned next;
    next.name = "t" + std::to_string(i) + (repeats ? "" : "." + std::to_string(window));
    next.kind = static_cast<CollectiveKind>(1 + (repeats ? i % 3 : static_cast<int>(random() % 4)));
    next.type = all_types()[repeats ? static_cast<std::size_t>(i) % all_types().size()
                                    : random() % all_types().size()];
    next.reduction = all_reductions()[random() % all_reductions().size()];
    if (next.type == ElementType::kBool && next.reduction == Reduction::kAverage)
      next.reduction = Reduction::kMax;
    next.root = static_cast<int>(random() % static_cast<std::uint64_t>(size));
    const std::int64_t elements =
        static_cast<std::int64_t>(random() % (random() % 8 == 0 ? 60000 : 300));
    for (int rank = 0; rank < size; ++rank) {
      const bool gathers = next.kind == CollectiveKind::kAllgather;
      next.extents.push_back(gathers ? static_cast<std::int64_t>(random() % 100) : elements);
    }
    next.seed = random();
    plan.push_back(std::move(next));
  }
  return plan;
}

Bytes input_of(const Planned& planned, int rank) {
  return random_elements(planned.type,
                         static_cast<std::size_t>(planned.extents[static_cast<std::size_t>(rank)]),
                         planned.seed + static_cast<std::uint64_t>(rank));
}

Bytes expected_of(const Planned& planned, int size) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(input_of(planned, rank));
  switch (planned.kind) {
    case CollectiveKind::kBroadcast:
      return inputs[static_cast<std::size_t>(planned.root)];
    case CollectiveKind::kBarrier:
      return {};
    case CollectiveKind::kAllgather: {
      Bytes all;
      for (const Bytes& input : inputs) all.insert(all.end(), input.begin(), input.end());
      return all;
    }
    case CollectiveKind::kAllreduce:
      break;
  }
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllreduce;
  request.type = planned.type;
  const bool averages = planned.reduction == Reduction::kAverage;
  request.reduction = averages ? Reduction::kSum : planned.reduction;
  request.divisor = averages ? size : 1;
  return reference_allreduce(request, inputs);
}

struct Running {
  const Planned* planned;
  Bytes input;
  Bytes output;
  std::uint64_t handle;
};

hvrun_request request_of(const Planned& planned, Running& running, const std::int64_t* extent,
                         bool in_place) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = static_cast<hvrun_operation>(planned.kind);
  request.name = planned.name.c_str();
  if (planned.kind == CollectiveKind::kBarrier) return request;
  request.type = static_cast<hvrun_type>(planned.type);
  if (planned.kind == CollectiveKind::kAllreduce)
    request.reduction = static_cast<hvrun_reduction>(planned.reduction);
  request.root = planned.root;
  request.ndim = 1;
  request.shape = extent;
  request.input = running.input.data();
  if (planned.kind == CollectiveKind::kAllgather) return request;  // the library owns the result
  if (!in_place) running.output.resize(running.input.size());
  request.output = in_place ? running.input.data() : running.output.data();
  return request;
}

void check(const Rank& rank, const Running& running) {
  const Planned& planned = *running.planned;
  const OperationPtr operation = rank.context.find(running.handle);
  Bytes actual(operation->result_bytes);
  if (!actual.empty()) std::memcpy(actual.data(), operation->output, actual.size());
  const int ulps =
      planned.reduction == Reduction::kProduct || planned.reduction == Reduction::kAverage ? 4 : 0;
  const std::string difference =
      first_difference(planned.type, expected_of(planned, rank.size), actual, ulps);
  expect(difference.empty(), planned.name + " (" + collective_name(planned.kind) + " of " +
                                 element_type_name(planned.type) + "): " + difference);
}

// Enqueues a window in this rank's own order, waits in another one, now and then by polling.
void run_window(Rank& rank, const std::vector<Planned>& plan, std::mt19937_64& own) {
  std::vector<std::unique_ptr<Running>> all;
  for (const Planned& planned : plan) {
    all.push_back(
        std::make_unique<Running>(Running{&planned, input_of(planned, rank.rank), {}, 0}));
  }
  std::shuffle(all.begin(), all.end(), own);
  for (auto& running : all) {
    const std::int64_t extent = running->planned->extents[static_cast<std::size_t>(rank.rank)];
    const hvrun_request request = request_of(*running->planned, *running, &extent, own() % 2 == 0);
    const Status status = rank.enqueue(request, &running->handle);
    expect(status.ok(), status.message);
  }
  std::shuffle(all.begin(), all.end(), own);
  for (auto& running : all) {
    rank.at("waiting for " + running->planned->name);
    while (own() % 3 == 0 && !rank.context.find(running->handle)->is_done)
      std::this_thread::yield();
    const Status status = rank.wait(running->handle);
    expect(status.ok(), status.message);
    check(rank, *running);
    expect(rank.context.release(running->handle), "release");
  }
}

void run_program(std::uint64_t seed, const JobOptions& options) {
  run_job(options, [seed](Rank& rank) {
    std::mt19937_64 shared(seed), own(seed * 1000 + static_cast<std::uint64_t>(rank.rank));
    for (int window = 0; window < 6; ++window)
      run_window(rank, plan_window(shared, rank.size, window), own);
  });
}

}  // namespace

TEST_CASE("random programs yield what a plain reference yields, whatever the order on each rank") {
  const std::vector<JobShape> shapes{{2}, {3}, {4}, {8}, {2, 2}, {1, 2, 3}, {1, 1, 1}};
  const int programs = std::max(7, static_cast<int>(70 * test_scale()));
  for (int i = 0; i < programs; ++i) {
    const auto seed = static_cast<std::uint64_t>(20261121 + i);
    JobOptions options;
    options.shape = shapes[static_cast<std::size_t>(i) % shapes.size()];
    options.kind = i % 2 == 0 ? RankKind::kThreadsOneMapping : RankKind::kThreadsMemfd;
    // A cache of 5 evicts all the time; a threshold of 2 KiB splits what could be fused.
    if (i % 3 == 0) options.environment.set("HVRUN_CACHE_CAPACITY", std::to_string(i % 2 * 5));
    if (i % 4 == 0) options.environment.set("HVRUN_FUSION_THRESHOLD", i % 8 == 0 ? "0" : "2K");
    if (i % 5 == 0) options.environment.set("HVRUN_DETERMINISTIC", "1");
    CAPTURE(seed);
    CAPTURE(name_of(options.shape));
    run_program(seed, options);
  }
}
