// Whoever computes long without waiting for anybody stops in between: the rank gives signs of life
// then, and other operations have their turn.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/ranks/blocking.h"
#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

constexpr std::int64_t kCount = 4 << 20;  // 16 MiB

std::byte* bytes_of(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// How often the collective gave way until it was done.
int pauses_of(RankContext& context, CollectiveRequest request) {
  const std::unique_ptr<Collective> collective = context.backend.start(std::move(request));
  int pauses = 0;
  for (Progress progress = Progress::kPending; progress != Progress::kDone;) {
    progress = collective->advance();
    require(progress != Progress::kFailed, collective->status().message);
    if (progress == Progress::kPaused) ++pauses;
    context.fabric.progress();
  }
  return pauses;
}

void require_pauses(RankContext& context, CollectiveRequest request, int least) {
  const int pauses = pauses_of(context, std::move(request));
  require(pauses >= least, "only " + std::to_string(pauses) + " pauses");
}

}  // namespace

TEST_CASE("adasum of a large tensor pauses in each of its passes") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, {}, [&](RankContext& context) {
      std::vector<float> data(kCount, static_cast<float>(context.rank + 1));
      CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kAdasum);
      request.segments = {{bytes_of(data), bytes_of(data), kCount}};
      request.prescale = 2;
      request.postscale = 0.5;
      require_pauses(context, std::move(request), 6);
      require(data.front() == 1.5f && data.back() == 1.5f, "the result");
    });
  }
}

TEST_CASE("the scaling of a rank alone pauses") {
  run_ranks({1}, {}, [&](RankContext& context) {
    std::vector<float> data(kCount, 2);
    CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kSum);
    const std::int64_t half = kCount / 2;
    request.segments = {{bytes_of(data), bytes_of(data), half},
                        {bytes_of(data) + 4 * half, bytes_of(data) + 4 * half, half}};
    request.prescale = 3;
    request.postscale = 0.5;
    require_pauses(context, std::move(request), 1);
    require(std::vector<float>(kCount, 3) == data, "the result");
  });
}

TEST_CASE("an allreduce in shared memory pauses, though nobody waits in it") {
  RunOptions options;
  options.config.heap_bytes = 64 << 20;
  run_ranks({2}, options, [&](RankContext& context) {
    SharedHeap& heap = *context.fabric.data_plane()->host().memory().own_heap();
    auto* const memory = heap.allocate(4 * kCount);
    require(memory != nullptr, "room in the heap");
    auto* const values = reinterpret_cast<float*>(memory);
    std::fill(values, values + kCount, static_cast<float>(context.rank + 1));
    CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kSum);
    request.segments = {{memory, memory, kCount}};
    require_pauses(context, std::move(request), 4);
    require(std::all_of(values, values + kCount, [](float value) { return value == 3; }),
            "the result");
    heap.release(memory);
  });
}

TEST_CASE("an average of sparse values pauses while it scales them") {
  run_ranks({1, 1}, {}, [&](RankContext& context) {
    std::vector<std::int64_t> index = {context.rank}, indices(2);
    std::vector<float> data(kCount, static_cast<float>(context.rank + 1)), all(2 * kCount);
    CollectiveRequest request;
    request.kind = CollectiveKind::kSparseAllreduce;
    request.type = ElementType::kFloat32;
    request.divisor = 2;
    request.segments = {{reinterpret_cast<std::byte*>(index.data()),
                         reinterpret_cast<std::byte*>(indices.data()), 1},
                        {bytes_of(data), bytes_of(all), kCount}};
    request.counts_by_rank = {1, 1};
    request.row_counts = {kCount};
    require_pauses(context, std::move(request), 31);
    require(all.front() == 0.5f && all[kCount - 1] == 0.5f, "the first half of the result");
    require(all[kCount] == 1 && all.back() == 1, "the second half of the result");
    require(indices == std::vector<std::int64_t>{0, 1}, "the indices");
  });
}

namespace {

// One of each; rank 0 needs all others for each of them.
std::vector<std::unique_ptr<CheckedOperation>> one_of_each(const RankContext& context) {
  std::vector<std::unique_ptr<CheckedOperation>> all;
  const CollectiveRequest sum = allreduce_of(ElementType::kFloat32, Reduction::kSum);
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size), 5000);
  all.push_back(make_allreduce(context, sum, {20000, 3}, true, 1));
  all.push_back(make_broadcast(context, ElementType::kInt16, context.size - 1, {20000, 3}, 2));
  all.push_back(make_allgather(context, ElementType::kInt32, counts, 3));
  all.push_back(make_reducescatter(context, sum, {20000, 3}, 1, 4));
  all.push_back(
      make_alltoall(context, ElementType::kInt32, random_splits(context.size, 5000, 5), 1, 5));
  return all;
}

// Advances until nothing could be done for a while.
void require_idleness(RankContext& context, Collective& collective, const std::string& what) {
  int idle = 0;
  for (int calls = 0; calls < 100'000 && idle < 100; ++calls) {
    const Progress progress = collective.advance();
    require(progress != Progress::kDone && progress != Progress::kFailed, what + " waits");
    idle = progress == Progress::kPending ? idle + 1 : 0;
    context.fabric.progress();
  }
  require(idle == 100, what + " says that it advances while its peers are late");
}

}  // namespace

// Else whoever drives it would not sleep.
TEST_CASE("a collective whose peers are late does not say that it advances") {
  for (const JobShape& shape : {JobShape{2}, {4}, {1, 1, 1}, {2, 2}, {1, 2}}) {
    CAPTURE(name_of(shape));
    std::atomic<std::size_t> begun{0};  // operations that the others may begin
    run_ranks(shape, {}, [&](RankContext& context) {
      const auto operations = one_of_each(context);
      for (std::size_t i = 0; i < operations.size(); ++i) {
        context.at(operations[i]->what);
        while (context.rank != 0 && begun <= i) {
          context.fabric.progress();
          std::this_thread::yield();
        }
        const auto collective = context.backend.start(operations[i]->request);
        if (context.rank == 0) {
          require_idleness(context, *collective, operations[i]->what);
          begun = i + 1;
        }
        operations[i]->verify(run_blocking(*collective, context.fabric));
      }
    });
  }
}

}  // namespace hv::runtime
