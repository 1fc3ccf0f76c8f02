// NCCL's calls fail or hang, and ranks die while their GPUs work: all ranks end with an error in
// words, and no kernel spins on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/processes.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kInternalError = 3;
constexpr std::int64_t kFaultCount = 1200;  // rows of one element, as many for each of the ranks

struct Fault {
  const char* function;
  int call;
  hvrun_operation operation = HVRUN_ALLREDUCE;
  bool is_uneven = false;  // ranks differ in what they give
};

const std::vector<Fault> kFaults{{"ncclCommInitRankConfig", 1},
                                 {"ncclCommInitRankConfig", 3},
                                 {"ncclCommGetAsyncError", 1},
                                 {"ncclCommGetAsyncError", 40},
                                 {"ncclRedOpCreatePreMulSum", 1},
                                 {"ncclAllReduce", 1},
                                 {"ncclAllReduce", 3},
                                 {"ncclReduceScatter", 1, HVRUN_REDUCESCATTER},
                                 {"ncclAllGather", 1, HVRUN_ALLGATHER},
                                 {"ncclBroadcast", 1, HVRUN_BROADCAST},
                                 {"ncclBroadcast", 4, HVRUN_ALLGATHER, true},
                                 {"ncclSend", 1, HVRUN_ALLTOALL},
                                 {"ncclRecv", 2, HVRUN_ALLTOALL},
                                 {"ncclGroupStart", 1, HVRUN_ALLTOALL},
                                 {"ncclGroupEnd", 1, HVRUN_ALLTOALL}};

// One rank's part of an operation on a GPU's memory.
struct Part {
  Part(Gpu& gpu, int rank, const Fault& fault)
      : extent(fault.is_uneven ? kFaultCount + rank : kFaultCount),
        values(static_cast<std::size_t>(extent), static_cast<float>(rank + 1)),
        memory(gpu.put(values.data(), values.size() * sizeof(float))),
        request(allreduce_request("w", &extent, memory, nullptr)) {
    request.operation = fault.operation;
    if (fault.operation == HVRUN_ALLREDUCE) request.reduction = HVRUN_AVERAGE;
    if (fault.operation == HVRUN_ALLREDUCE || fault.operation == HVRUN_BROADCAST)
      request.output = memory;
    gpu.place(&request);
  }

  std::int64_t extent;
  std::vector<float> values;
  std::byte* memory;
  hvrun_request request;
};

// Two of them that travel as one: several tensors lie in a window.
struct Bucket {
  Bucket(Gpu& gpu, int rank) : parts{{gpu, rank, {"", 0}}, {gpu, rank, {"", 0}}} {
    parts[1].request.name = "v";
    for (Part& part : parts) {
      part.request.group = 3;
      part.request.group_size = 2;
    }
  }
  std::vector<std::uint64_t> enqueue(const Rank& rank) {
    std::vector<std::uint64_t> handles(2);
    for (std::size_t i = 0; i < handles.size(); ++i)
      expect(rank.enqueue(parts[i].request, &handles[i]).ok(), "enqueue");
    return handles;
  }

  Part parts[2];
};

JobOptions three_ranks() {
  JobOptions options = in_shape({3});
  options.shuts_down = false;
  return options;
}

// Whoever has failed leaves, as a program does whose exception nobody catches.
void leave(Rank& rank, Gpu& gpu) {
  rank.context.shutdown();
  (void)gpu.get(nullptr, 0);  // whatever its stream waits for comes, or the test hangs
}

}  // namespace

TEST_SUITE_BEGIN("nccl");

// A peer's death comes from the agent; NCCL's remote error alone would not say
// who it was.
TEST_CASE("a rank that is killed is named to all in 10 s, and no kernel spins on") {
  int told[2];
  REQUIRE(::pipe(told) == 0);
  Processes job({3}, [&](Context& context) {
    const int own = context.identity().rank;
    Gpu gpu(0);  // each process has GPUs of its own
    const Fault fault{"", 0};
    Part part(gpu, own, fault);
    for (int round = 0;; ++round) {
      if (round == 5) (void)!::write(told[1], "r", 1);
      Status status = run_in(context, part.request);
      if (status.ok()) continue;
      if (status.code != StatusCode::kPeerLost) return 2;
      if (status.message.find("rank 1") == std::string::npos) return 3;
      (void)gpu.get(nullptr, 0);
      return 0;
    }
  });
  job.kill_when_all_told(told[0], 1);
  const TimePoint killed = now();
  CHECK(job.exit_code(2) == 0);
  CHECK(job.exit_code(0) == 0);
  CHECK(now() - killed < std::chrono::seconds(10));
  for (const int fd : told) ::close(fd);
}

// A rank whose part was launched before has its result's end with the next operation.
TEST_CASE("a call of NCCL that fails ends the job with its words on every rank") {
  for (const Fault& fault : kFaults) {
    const std::string function = fault.function;
    CAPTURE(function);
    CAPTURE(fault.call);
    std::atomic<int> told{0}, failed{0};
    run_job(three_ranks(), [&](Rank& rank) {
      Gpu gpu(rank.rank);
      Part part(gpu, rank.rank, fault);
      expect(rank.run(barrier_request()).ok(), "before");
      if (rank.rank == 0)
        Gpu::set_nccl_faults(function + "@" + std::to_string(fault.call) + "=" +
                             std::to_string(kInternalError));
      expect(rank.run(barrier_request()).ok(), "between");
      Status status = rank.run(part.request);
      for (int again = 0; status.ok() && again < 20; ++again) status = rank.run(part.request);
      if (!status.ok()) ++failed;
      if (status.message.find("NCCL 2") != std::string::npos) ++told;
      leave(rank, gpu);
    });
    Gpu::set_nccl_faults("");
    CHECK(failed == 3);
    CHECK(told > 0);
    // Else the end of the process would come upon NCCL's threads.
    CHECK(Gpu::nccl_left() == 0);
  }
}

TEST_CASE("a window that cannot be made ends the job with the reason on every rank") {
  if (!Gpu::has_windows()) return;
  for (const char* const function : {"ncclMemAlloc", "ncclCommWindowRegister"}) {
    CAPTURE(function);
    std::atomic<int> told{0};
    run_job(three_ranks(), [&](Rank& rank) {
      Gpu gpu(rank.rank);
      Bucket bucket(gpu, rank.rank);
      if (rank.rank == 0) Gpu::set_nccl_faults(std::string(function) + "@1=3");
      expect(rank.run(barrier_request()).ok(), "before");
      for (const std::uint64_t handle : bucket.enqueue(rank)) {
        const Status status = rank.wait(handle);
        if (status.message.find("try: HVRUN_NCCL_WINDOWS=0") != std::string::npos) ++told;
      }
      leave(rank, gpu);
    });
    Gpu::set_nccl_faults("");
    CHECK(told == 2 * 3);
    CHECK(Gpu::nccl_left() == 0);
  }
}

TEST_CASE("a window that never comes about ends the job in words") {
  if (!Gpu::has_windows()) return;
  JobOptions options = three_ranks();
  options.environment.set("HVRUN_STALL_SHUTDOWN_SECONDS", "0.3");
  std::atomic<int> told{0};
  run_job(options, [&](Rank& rank) {
    Gpu gpu(rank.rank);
    Bucket bucket(gpu, rank.rank);
    if (rank.rank == 0) Gpu::set_nccl_faults("ncclCommWindowRegister@1=hang");
    expect(rank.run(barrier_request()).ok(), "before");
    for (const std::uint64_t handle : bucket.enqueue(rank)) {
      const Status status = rank.wait(handle);
      expect(!status.ok(), "it went on");
      if (status.message.find("launching the allreduce of tensor 'w' and 1 more has gone on") !=
          std::string::npos)
        ++told;
    }
    leave(rank, gpu);
  });
  Gpu::set_nccl_faults("");
  CHECK(told > 0);
}

TEST_CASE("memory of a window stays for a pack that comes late, though the job has failed") {
  if (!Gpu::has_windows()) return;
  const int before = Gpu::failures();
  std::vector<std::unique_ptr<Gpu>> gpus;  // outlive the runtimes
  for (int rank = 0; rank < 3; ++rank) gpus.push_back(std::make_unique<Gpu>(rank));
  run_job(three_ranks(), [&](Rank& rank) {
    Gpu& gpu = *gpus[static_cast<std::size_t>(rank.rank)];
    Bucket bucket(gpu, rank.rank);
    gpu.hold();
    if (rank.rank == 0) Gpu::set_nccl_faults("ncclAllReduce@1=3");
    expect(rank.run(barrier_request()).ok(), "before");
    for (const std::uint64_t handle : bucket.enqueue(rank)) (void)rank.wait(handle);
    while (rank.run(barrier_request()).ok()) continue;  // until all have heard of it
    rank.context.shutdown();
  });
  Gpu::set_nccl_faults("");
  for (const auto& gpu : gpus) gpu->let_go();
  gpus[0]->take_away(gpus[0]->put(nullptr, 8));  // waits for all that runs anywhere
  CHECK(Gpu::failures() == before);
}

TEST_CASE("work of NCCL's that never ends, and a meeting that never ends, end the job in words") {
  const std::pair<const char*, const char*> kinds[] = {
      {"ncclAllReduce@1=hang", "what the GPU does for the allreduce of tensor 'w' has gone on"},
      {"ncclAllReduce@1=hang,ncclCommAbort@1=hang,ncclCommAbort@2=hang,ncclCommAbort@3=hang",
       "what the GPU does for the allreduce of tensor 'w' has gone on"},  // NCCL can revoke, too
      {"ncclCommInitRankConfig@1=hang",
       "getting ready for the allreduce of tensor 'w' has gone on"}};
  for (const auto& [fault, words] : kinds) {
    CAPTURE(fault);
    std::atomic<int> told{0};
    JobOptions options = three_ranks();
    options.environment.set("HVRUN_STALL_SHUTDOWN_SECONDS", "0.3");
    run_job(options, [&](Rank& rank) {
      Gpu gpu(rank.rank);
      Part part(gpu, rank.rank, kFaults.front());
      if (rank.rank == 0) Gpu::set_nccl_faults(fault);
      expect(rank.run(barrier_request()).ok(), "before");
      Status status = rank.run(part.request);
      while (status.ok()) status = rank.run(barrier_request());
      expect(status.message.find(words) != std::string::npos, status.message);
      if (status.code == StatusCode::kStalled) {
        expect(status.message.find("NCCL_DEBUG=INFO") != std::string::npos, status.message);
        ++told;
      }
      leave(rank, gpu);
    });
    Gpu::set_nccl_faults("");
    CHECK(told > 0);
  }
}

// Until then it may launch on memory that callers would have given back. Two seconds are what the
// engine waits for that.
TEST_CASE("nobody hears of a failure before NCCL lets go of their memory, or two seconds") {
  std::string faults = "ncclAllReduce@1=3";
  // More than these ranks call: a communicator of the case before may still be given up.
  for (int call = 1; call <= 9; ++call)
    faults += ",ncclCommAbort@" + std::to_string(call) + "=hang";
  std::atomic<int> told{0};
  run_job(three_ranks(), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    Part part(gpu, rank.rank, kFaults.front());
    expect(rank.run(part.request).ok(), "all have a communicator");
    expect(rank.run(barrier_request()).ok(), "and have used it");
    if (rank.rank == 0) Gpu::set_nccl_faults(faults);
    expect(rank.run(barrier_request()).ok(), "before");
    const TimePoint begun = now();
    Status status = rank.run(part.request);
    while (status.ok()) status = rank.run(part.request);
    expect(now() - begun > std::chrono::milliseconds(1900), "it waited");
    ++told;
    leave(rank, gpu);
  });
  Gpu::set_nccl_faults("");
  CHECK(told == 3);
}

TEST_CASE("where NCCL cannot begin, tensors go through the host's memory") {
  Gpu::set_nccl_faults("ncclGetUniqueId@1=3");
  run_job(in_shape({3}), [&](Rank& rank) {
    Gpu gpu(rank.rank);
    Part part(gpu, rank.rank, kFaults.front());
    expect(rank.run(part.request).ok(), "run");
    expect(gpu.values<float>(part.memory, kFaultCount) == std::vector<float>(kFaultCount, 2),
           "average");
  });
  Gpu::set_nccl_faults("");
}

TEST_SUITE_END();
