// A rank that stands still: given up by all others after the peer timeout, and not before.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;
constexpr int kSilenceAsExpected = 42;
// Long enough that a rank of a crowded machine is not taken for a silent one.
constexpr milliseconds kTimeout{3000};

// One word that all ranks of a forked job and the test see.
struct SharedWord {
  SharedWord()
      : word(static_cast<std::atomic<int>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedWord() { ::munmap(word, 4096); }
  std::atomic<int>* const word;
};

// The largest of what the ranks give.
Status largest(RankContext& context, float mine, float* of_all) {
  std::vector<float> data(50000, mine);
  CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kMax);
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  request.segments = {{bytes, bytes, static_cast<std::int64_t>(data.size())}};
  Status status = context.run(std::move(request));
  *of_all = data.back();
  return status;
}

// As long as the test lets them; 0 when told to end, kAsExpected when `lost` was given up.
int work_until_told(RankContext& context, std::atomic<int>& end, const std::string& lost) {
  for (int round = 0;; ++round) {
    if (round == 3) context.at("under way");
    context.fabric.progress();  // as the engine does in every step: it gives the signs of life
    float told = 0;
    const Status status = largest(context, static_cast<float>(end.load()), &told);
    if (status.ok() && told == 0) continue;
    if (status.ok()) return 0;
    const bool is_it = status.code == StatusCode::kPeerLost &&
                       status.message.find(lost + " gave no sign of life for 3 s") == 0;
    if (!is_it) std::fprintf(stderr, "rank %d: %s\n", context.rank, status.message.c_str());
    context.at("told");
    while (end.load() == 0) {  // alive until the others have been told, too
      context.fabric.progress();
      ::sched_yield();
    }
    return is_it ? kSilenceAsExpected : 1;
  }
}

FabricConfig with_timeout(milliseconds timeout) {
  FabricConfig config;
  config.peer_timeout = timeout;
  return config;
}

}  // namespace

TEST_CASE("a rank that is stopped is named to every other rank after the peer timeout") {
  for (const auto& [shape, victim] :
       {std::pair<JobShape, int>{{3}, 1}, {{1, 1}, 0}, {{2, 2}, 3}, {{2, 1}, 1}}) {
    CAPTURE(name_of(shape));
    SharedWord end;
    ForkedJob job(shape, with_timeout(kTimeout));
    const std::string lost = "rank " + std::to_string(victim);
    job.start([&](RankContext& context) { return work_until_told(context, *end.word, lost); });
    for (int rank = 0; rank < size_of(shape); ++rank) job.await_position(rank, "under way");
    job.signal_rank(victim, SIGSTOP);
    for (int rank = 0; rank < size_of(shape); ++rank)
      if (rank != victim) job.await_position(rank, "told");
    *end.word = 1;
    job.kill_rank(victim, false);
    const auto results = job.wait();
    for (int rank = 0; rank < size_of(shape); ++rank)
      if (rank != victim)
        CHECK(WEXITSTATUS(results[static_cast<std::size_t>(rank)]) == kSilenceAsExpected);
  }
}

TEST_CASE("time in which the whole job is stopped does not count") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    SharedWord end;
    ForkedJob job(shape, with_timeout(kTimeout));
    job.start([&](RankContext& context) { return work_until_told(context, *end.word, "nobody"); });
    for (int rank = 0; rank < 2; ++rank) job.await_position(rank, "under way");
    for (int rank = 0; rank < 2; ++rank) job.signal_rank(rank, SIGSTOP);
    const timespec longer_than_the_timeout{3, 500000000};
    ::nanosleep(&longer_than_the_timeout, nullptr);  // sleep-ok: the stop itself is under test
    for (int rank = 0; rank < 2; ++rank) job.signal_rank(rank, SIGCONT);
    // Well over the timeout's beats: whoever took the stop for silence has said so by then.
    const timespec once_more{1, 500000000};
    ::nanosleep(&once_more, nullptr);  // sleep-ok: nothing must happen
    *end.word = 1;
    for (const int result : job.wait()) {
      CHECK(WIFEXITED(result));
      CHECK(WEXITSTATUS(result) == 0);
    }
  }
}

}  // namespace hv::runtime
