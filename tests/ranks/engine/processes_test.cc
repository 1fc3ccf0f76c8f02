// Whole runtimes as processes that can be killed.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>

#include "tests/ranks/engine/processes.h"

using namespace hv;
using namespace hv::runtime;

namespace {

Status allreduce(Context& context, const char* name, std::vector<float>& data) {
  const auto count = static_cast<std::int64_t>(data.size());
  return run_in(context, allreduce_request(name, &count, data.data(), data.data()));
}

// An allgather of bytes or, with splits, an alltoall.
Status exchange(Context& context, const std::vector<std::byte>& data,
                const std::vector<std::int64_t>& splits) {
  const auto count = static_cast<std::int64_t>(data.size());
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = splits.empty() ? HVRUN_ALLGATHER : HVRUN_ALLTOALL;
  request.name = "rows";
  request.type = HVRUN_UINT8;
  request.ndim = 1;
  request.shape = &count;
  request.input = data.data();
  request.splits = splits.data();
  request.split_count = splits.size();
  return run_in(context, request);
}

// From now on this process gets no more than so many further bytes.
bool limit_memory(std::size_t further_bytes) {
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file || std::fscanf(file, "%ld", &pages) != 1) return false;
  std::fclose(file);
  rlimit limit{};
  limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + further_bytes;
  limit.rlim_max = limit.rlim_cur;
  return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

int open_descriptors() {
  const std::filesystem::directory_iterator first("/proc/self/fd"), end;
  return static_cast<int>(std::distance(first, end));
}

}  // namespace

TEST_CASE("processes sum over shared memory and TCP") {
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    Processes job(shape, [](Context& context) {
      for (int round = 1; round <= 20; ++round) {
        std::vector<float> data(static_cast<std::size_t>(round) * 1000, 1);
        if (!allreduce(context, "w", data).ok() || data.back() != 3) return 1;
      }
      return 0;
    });
    for (int rank = 0; rank < 3; ++rank) CHECK(job.exit_code(0) == 0);
  }
}

TEST_CASE("a child that a rank forks keeps none of the runtime's descriptors") {
  const JobShape shape{2, 1};
  const int of_parent = open_descriptors();
  const int event_fds = size_of(shape);  // of the hub, which plays the agent
  Processes job(shape, [=](Context&) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(open_descriptors() - of_parent - event_fds);
    int state = 0;
    return ::waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state) : 100;
  });
  for (int rank = 0; rank < 3; ++rank) CHECK(job.exit_code(0) == 0);
}

// Rank 1 gets 128 MiB or more and has 100 for it.
TEST_CASE("a rank without memory for what it gets ends the job with words, and nobody hangs") {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  for (const auto& splits :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{0, kBytes, 0}}) {
    const std::function<int(Context&)> body = [&](Context& context) {
      const std::vector<std::byte> data(kBytes);
      const bool is_poor = context.identity().rank == 1;
      if (is_poor && !limit_memory(std::size_t{100} << 20)) return 1;
      const Status status = exchange(context, data, splits);
      if (status.message.find("out of memory") == std::string::npos) return 2;
      if (status.message.find("tensor 'rows'") == std::string::npos) return 3;
      if (is_poor) return status.code == StatusCode::kMemory ? 0 : 4;
      if (status.code != StatusCode::kPeerLost) return 5;
      return status.message.find("rank 1 gave up") == std::string::npos ? 6 : 0;
    };
    for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
      CAPTURE(name_of(shape));
      CAPTURE(splits.empty());
      Processes job(shape, body);
      for (int rank = 0; rank < 3; ++rank) CHECK(job.exit_code(0) == 0);
    }
  }
}

// hvrun.h: "at most 5 s in all: a peer that hangs is left behind"; 300 ms here.
TEST_CASE("leaving ends at its limit when a peer hangs, in one host and between two") {
  CHECK(ContextParts().leave_limit == std::chrono::seconds(5));
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    int stopped[2];
    REQUIRE(::pipe(stopped) == 0);
    Processes job(
        shape,
        [&](Context& context) {
          // A peer that hears of the leaving before it hangs says goodbye.
          char byte = 'x';
          if (context.identity().rank == 1) ::raise(SIGSTOP);
          if (::read(stopped[0], &byte, 1) != 1) return 3;
          const TimePoint start = now();
          const auto leave = [&] {
            context.shutdown();
            return now() - start;
          };
          auto beside = std::async(std::launch::async, leave);  // a second one waits for the first
          const auto took = leave(), other_took = beside.get();
          if (std::min(took, other_took) < std::chrono::milliseconds(200)) return 1;
          return std::max(took, other_took) < kBeforeSilence ? 0 : 2;
        },
        std::chrono::milliseconds(300));
    job.await_stopped(1);
    CHECK(::write(stopped[1], "x", 1) == 1);
    CHECK(job.exit_code(0) == 0);
    for (const int fd : stopped) ::close(fd);
  }
}

// Programs whose operations have ended with an error often end without leaving.
TEST_CASE("leaving waits for no rank that has heard of it, whatever that one does then") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    int left[2];
    REQUIRE(::pipe(left) == 0);
    const std::function<int(Context&)> body = [&](Context& context) {
      char byte = 'x';
      if (context.identity().rank == 1) {
        context.shutdown();
        return ::write(left[1], "xx", 2) == 2 ? 0 : 1;
      }
      std::vector<float> data(1, 1);
      const bool is_told = allreduce(context, "w", data).code == StatusCode::kShutdown;
      const bool has_rank_1_left = ::read(left[0], &byte, 1) == 1;
      ::_exit(is_told && has_rank_1_left ? 0 : 2);
    };
    Processes job(shape, body, std::chrono::hours(1));
    for (int rank = 0; rank < 3; ++rank) CHECK(job.exit_code(0) == 0);
    for (const int fd : left) ::close(fd);
  }
}

// No agent tells anything here: the socket alone does. Rank 0 dies with rank 1's message unread.
TEST_CASE("a connection that is reset is told with the system's reason") {
  int go[2], sent[2];
  REQUIRE(::pipe(go) == 0);
  REQUIRE(::pipe(sent) == 0);
  Processes job({1, 1}, [&](Context& context) {
    if (context.identity().rank == 0) ::raise(SIGSTOP);
    char byte = 'x';
    if (::read(go[0], &byte, 1) != 1) return 1;
    const std::int64_t count = 1;
    float value = 1;
    const hvrun_request request = allreduce_request("w", &count, &value, &value);
    OperationPtr operation;
    std::uint64_t handle = 0;
    if (!read_request(&request, 2, &operation).ok()) return 2;
    if (!context.enqueue(operation, &handle).ok()) return 3;
    (void)context.wait(*operation, now() + std::chrono::milliseconds(100));
    if (::write(sent[1], &byte, 1) != 1) return 4;
    const Status status = context.wait(*operation, TimePoint::max());
    if (status.code != StatusCode::kPeerLost) return 5;
    const char* words = "rank 0 lost its connection (receive: Connection reset by peer)";
    return status.message.find(words) == std::string::npos ? 6 : 0;
  });
  char byte = 'x';
  job.await_stopped(0);
  REQUIRE(::write(go[1], &byte, 1) == 1);
  REQUIRE(::read(sent[0], &byte, 1) == 1);
  ::kill(job.children[0], SIGKILL);
  CHECK(job.exit_code(1) == 0);
  for (const int fd : {go[0], go[1], sent[0], sent[1]}) ::close(fd);
}

// Killed in the middle of operations, told by the agent; each survivor names it at once, whether
// it waited, was in the middle of a large sum, or came later.
TEST_CASE("a killed process ends every other rank's operations with its name at once") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}}) {
    CAPTURE(name_of(shape));
    int told[2];
    REQUIRE(::pipe(told) == 0);  // "I am in the middle", from each rank
    const std::function<int(Context&)> body = [&](Context& context) {
      std::vector<float> data(1 << 20, 1);
      for (int round = 0;; ++round) {
        if (round == 5) (void)!::write(told[1], "r", 1);
        const TimePoint start = now();
        const Status status = allreduce(context, "w", data);
        if (status.ok()) continue;
        if (status.code != StatusCode::kPeerLost) return 2;
        if (status.message.find("rank 1") == std::string::npos) return 3;
        if (now() - start > kBeforeSilence) return 4;
        return allreduce(context, "later", data).code == StatusCode::kPeerLost ? 0 : 5;
      }
    };
    Processes job(shape, body);
    job.kill_when_all_told(told[0], 1);
    CHECK(job.exit_code(2) == 0);
    CHECK(job.exit_code(0) == 0);
    ::close(told[0]);
    ::close(told[1]);
  }
}
