// Communicators of the stand-in for NCCL meet, order their work and end as NCCL's do; ranks are
// threads.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <stdlib.h>

#include <atomic>
#include <barrier>
#include <string>

#include "tests/unit/fake_nccl/rank.h"

using namespace hv;
using namespace hv::nccl;

namespace {

int allreduce_one(Rank& rank, int* at) {
  return nccl_call().allreduce(at, at, 1, kInt32, kSum, rank.comm, rank.stream);
}

void abort(Rank& rank) {
  CHECK(nccl_call().abort(rank.comm) == kSuccess);
  rank.comm = nullptr;
}

cuda::Event record(cuda::Stream stream) {
  cuda::Event event = nullptr;
  CHECK(cuda_call().make_event(&event, cuda::kEventDisableTiming) == cuda::kSuccess);
  CHECK(cuda_call().record_event(event, stream) == cuda::kSuccess);
  return event;
}

}  // namespace

TEST_CASE("a meeting is in progress until all have come") {
  const UniqueId id = make_id();
  std::barrier has_seen(2), have_met(2);
  run_threads(2, [&](Rank& rank) {
    if (rank.rank == 1) has_seen.arrive_and_wait();
    Config config;
    config.blocking = 0;
    const int begun = nccl_call().init_rank(&rank.comm, 2, id, rank.rank, &config);
    int state = kSuccess;
    CHECK(nccl_call().async_error(rank.comm, &state) == kSuccess);
    if (rank.rank == 0) {
      CHECK(begun == kInProgress);
      CHECK(state == kInProgress);
      has_seen.arrive_and_wait();
    }
    CHECK(rank.settle() == kSuccess);
    have_met.arrive_and_wait();  // an abort is a death to the other
    abort(rank);
  });
  CHECK(nccl_call().left() == 0);
}

TEST_CASE("a communicator that blocks returns when all have come, and launches at once") {
  const UniqueId id = make_id();
  run_threads(2, [&](Rank& rank) {
    CHECK(rank.join(id, true) == kSuccess);
    int* const at = rank.put(std::vector<int>{1});
    for (int time = 0; time < 5; ++time) CHECK(allreduce_one(rank, at) == kSuccess);
    CHECK(rank.get(at, 1) == std::vector<int>{32});
    CHECK(nccl_call().finalize(rank.comm) == kSuccess);
    CHECK(allreduce_one(rank, at) == kInvalidUsage);
    CHECK(nccl_call().destroy(rank.comm) == kSuccess);
  });
}

TEST_CASE(
    "an event is refused on the stream of a call that is in progress, and taken once it is not") {
  std::atomic<int> refused{0};
  run_ranks(2, [&](Rank& rank) {
    int* const at = rank.put(std::vector<int>{1});
    cuda::Event event = nullptr;
    CHECK(cuda_call().make_event(&event, cuda::kEventDisableTiming) == cuda::kSuccess);
    for (int time = 0; time < 5; ++time) {
      const int begun = allreduce_one(rank, at);
      // Its delay may be over by now.
      if (cuda_call().record_event(event, rank.stream) != cuda::kSuccess) {
        CHECK(begun == kInProgress);
        ++refused;
      }
      CHECK(rank.has_launched(begun));
      CHECK(cuda_call().record_event(event, rank.stream) == cuda::kSuccess);
    }
    CHECK(rank.get(at, 1) == std::vector<int>{32});
    CHECK(cuda_call().destroy_event(event) == cuda::kSuccess);
  });
  CHECK(refused > 0);
}

TEST_CASE("a rank can give a meeting up") {
  const UniqueId id = make_id();
  Rank rank(0, 2);
  Config config;
  config.blocking = 0;
  CHECK(nccl_call().init_rank(&rank.comm, 2, id, 0, &config) == kInProgress);
  abort(rank);
  CHECK(nccl_call().left() == 0);
}

TEST_CASE("two ranks on one GPU are refused, unless NCCL is new enough and told so") {
  for (const bool is_allowed : {false, true}) {
    ::setenv("HVRUN_FAKE_NCCL_VERSION", is_allowed ? "23007" : "22907", 1);
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    const UniqueId id = make_id();
    run_threads(2, [&](Rank& rank) {
      use_gpu(0);
      CHECK(rank.join(id) == (is_allowed ? kSuccess : kInvalidUsage));
      const std::string why = nccl_call().last_error(rank.comm);
      CHECK(why.empty() == is_allowed);
      if (!is_allowed) CHECK(why.find("Duplicate GPU detected") != std::string::npos);
      abort(rank);
      CHECK(cuda_call().pop_context(nullptr) == cuda::kSuccess);
    });
  }
  ::unsetenv("HVRUN_FAKE_NCCL_VERSION");
  ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

TEST_CASE("work waits for what its stream waits for") {
  run_ranks(2, [](Rank& rank) {
    cuda::Stream other = nullptr;
    CHECK(cuda_call().make_stream(&other, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
    int* const at = rank.put(std::vector<int>{0});
    const int last = 7;
    for (int value = 0; value <= last; ++value)
      CHECK(cuda_call().fill(reinterpret_cast<cuda::Address>(at), static_cast<unsigned char>(value),
                             1, other) == cuda::kSuccess);
    const cuda::Event filled = record(other);
    CHECK(cuda_call().stream_wait(rank.stream, filled, 0) == cuda::kSuccess);
    CHECK(rank.has_launched(allreduce_one(rank, at)));
    const cuda::Event reduced = record(rank.stream);
    CHECK(cuda_call().stream_wait(other, reduced, 0) == cuda::kSuccess);
    int out = 0;
    CHECK(cuda_call().copy_to_host(&out, reinterpret_cast<cuda::Address>(at), sizeof out, other) ==
          cuda::kSuccess);
    CHECK(cuda_call().stream_synchronize(other) == cuda::kSuccess);
    CHECK(out == 2 * last);
    for (const cuda::Event event : {filled, reduced}) cuda_call().destroy_event(event);
    cuda_call().destroy_stream(other);
  });
}

TEST_CASE("work of one communicator has the order of its calls on whatever streams") {
  run_ranks(2, [](Rank& rank) {
    cuda::Stream other = nullptr;
    CHECK(cuda_call().make_stream(&other, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
    int* const at = rank.put(std::vector<int>{1});
    int* const apart = rank.put(std::vector<int>{1});
    for (int time = 0; time < 10; ++time)
      CHECK(rank.has_launched(nccl_call().allreduce(at, at, 1, kInt32, kSum, rank.comm,
                                                    time % 2 == 0 ? other : rank.stream)));
    CHECK(nccl_call().group_start() == kSuccess);  // all of its streams wait for it
    nccl_call().allreduce(at, at, 1, kInt32, kSum, rank.comm, other);
    nccl_call().allreduce(apart, apart, 1, kInt32, kSum, rank.comm, rank.stream);
    CHECK(rank.has_launched(nccl_call().group_end()));
    CHECK(rank.get(at, 1) == std::vector<int>{2048});
    CHECK(rank.get(apart, 1) == std::vector<int>{2});
    cuda_call().destroy_stream(other);
  });
}

TEST_CASE("an abort ends work that a peer never comes to, and the stream goes on") {
  run_ranks(2, [](Rank& rank) {
    int* const at = rank.put(std::vector<int>{1});
    int* const beside = rank.put(std::vector<int>{0});
    if (rank.rank == 0) {
      CHECK(rank.has_launched(allreduce_one(rank, at)));
      CHECK(cuda_call().fill(reinterpret_cast<cuda::Address>(beside), 1, 1, rank.stream) == 0);
      CHECK(cuda_call().stream_query(rank.stream) == cuda::kNotReady);
    }
    abort(rank);
    if (rank.rank == 0) CHECK(rank.get(beside, 1) == std::vector<int>{1});
  });
  CHECK(nccl_call().left() == 0);
}

TEST_CASE("a communicator that is busy with a launch refuses calls, and has failed then") {
  run_ranks(2, [](Rank& rank) {
    int* const at = rank.put(std::vector<int>{1});
    int result = kSuccess, state = kSuccess;
    while (result == kSuccess || result == kInProgress) result = allreduce_one(rank, at);
    CHECK(result == kInvalidArgument);
    CHECK(nccl_call().async_error(rank.comm, &state) == kSuccess);
    CHECK(state == kInvalidArgument);
    CHECK(nccl_call().destroy(rank.comm) == kInvalidArgument);
    abort(rank);
  });
}

TEST_CASE("a call can be told to fail, or its work never to end") {
  run_ranks(2, [](Rank& rank) {
    static std::barrier has_called(2);
    int* const at = rank.put(std::vector<int>{1});
    if (rank.rank == 0) {
      nccl_call().set_faults("ncclAllReduce@1=3,ncclAllReduce@2=hang");
      CHECK(allreduce_one(rank, at) == 3);
      CHECK(rank.has_launched(allreduce_one(rank, at)));
      CHECK(cuda_call().stream_query(rank.stream) == cuda::kNotReady);
      nccl_call().set_faults("");
    }
    has_called.arrive_and_wait();
    abort(rank);
    CHECK(rank.get(at, 1) == std::vector<int>{1});
  });
}

TEST_CASE("a meeting can be told never to end") {
  nccl_call().set_faults("ncclCommInitRankConfig@1=2,ncclCommInitRankConfig@2=hang");
  const UniqueId id = make_id();
  Rank rank(0, 1);
  CHECK(rank.join(id) == kSystemError);
  Config config;
  config.blocking = 0;
  CHECK(nccl_call().init_rank(&rank.comm, 1, id, 0, &config) == kInProgress);
  int state = kSuccess;
  CHECK(nccl_call().async_error(rank.comm, &state) == kSuccess);
  CHECK(state == kInProgress);
  abort(rank);
  nccl_call().set_faults("");
}

TEST_CASE("what is made and not given back is counted") {
  run_ranks(2, [](Rank& rank) {
    static std::barrier both(2);
    void* memory = nullptr;
    void* handle = nullptr;
    Window window = nullptr;
    CHECK(nccl_call().allocate(&memory, 4096) == kSuccess);
    CHECK(nccl_call().register_buffer(rank.comm, memory, 4096, &handle) == kSuccess);
    CHECK(rank.has_launched(
        nccl_call().register_window(rank.comm, memory, 4096, &window, kSymmetricWindow)));
    CHECK(window != nullptr);
    both.arrive_and_wait();
    CHECK(nccl_call().left() == 2 * 4);
    both.arrive_and_wait();
    CHECK(nccl_call().deregister_window(rank.comm, window) == kSuccess);
    CHECK(nccl_call().deregister_buffer(rank.comm, handle) == kSuccess);
    CHECK(nccl_call().deregister_buffer(rank.comm, handle) == kInvalidArgument);
    CHECK(nccl_call().free(memory) == kSuccess);
    CHECK(rank.has_launched(nccl_call().finalize(rank.comm)));
  });
  CHECK(nccl_call().left() == 0);
}

TEST_CASE("those who stay go on with a smaller communicator after work was revoked") {
  run_ranks(3, [](Rank& rank) {
    int* const at = rank.put(std::vector<int>{rank.rank});
    if (rank.rank == 1) return abort(rank);
    CHECK(rank.has_launched(allreduce_one(rank, at)));
    CHECK(nccl_call().revoke(rank.comm, 0) == kSuccess);
    CHECK(rank.settle() == kSuccess);
    int excluded[] = {1};
    Comm smaller = nullptr;
    Config config;
    config.blocking = 0;
    const int begun = nccl_call().shrink(rank.comm, excluded, 1, &smaller, &config, 0);
    CHECK((begun == kInProgress || begun == kSuccess));
    CHECK(Rank::settle(smaller) == kSuccess);
    abort(rank);
    rank.comm = smaller;
    int* const fresh = rank.put(std::vector<int>{rank.rank});
    CHECK(rank.has_launched(allreduce_one(rank, fresh)));
    CHECK(rank.get(fresh, 1) == std::vector<int>{2});
  });
  CHECK(nccl_call().left() == 0);
}
