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

#include "src/rendezvous/forked_store.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// Each rank a child of this process; body's value is its exit code. The parent plays the agent.
struct Processes {
  Processes(const JobShape& shape, const std::function<int(Context&)>& body,
            std::chrono::milliseconds leaves_within = ContextParts().leave_limit)
      : hub(size_of(shape)), leave_limit(leaves_within) {
    const auto identities = identities_of(shape);
    std::fflush(nullptr);
    for (const RankIdentity& who : identities) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) ::_exit(run(who, body));
      children.push_back(child);
    }
  }
  ~Processes() {
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  }

  int run(const RankIdentity& who, const std::function<int(Context&)>& body) {
    ContextParts parts;
    parts.identity = who;
    parts.store = hub.store(who.rank);
    parts.fabric.addresses = {"127.0.0.1"};
    parts.leave_limit = leave_limit;
    std::shared_ptr<Context> context;
    const Status joined = Context::join(std::move(parts), &context);
    if (!joined.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", who.rank, joined.message.c_str());
      return 100;
    }
    const int code = body(*context);
    context->shutdown();
    return code;
  }

  int exit_code(int rank) {
    int state = 0;
    const auto index = static_cast<std::size_t>(rank);
    if (::waitpid(children[index], &state, 0) != children[index]) return -1;
    children.erase(children.begin() + rank);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
  }

  void await_stopped(int rank) {
    int state = 0;
    const pid_t child = children[static_cast<std::size_t>(rank)];
    REQUIRE(::waitpid(child, &state, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(state));
  }

  ForkedStoreHub hub;
  std::chrono::milliseconds leave_limit;
  std::vector<pid_t> children;
};

Status allreduce(Context& context, const char* name, std::vector<float>& data) {
  const auto count = static_cast<std::int64_t>(data.size());
  const hvrun_request request = allreduce_request(name, &count, data.data(), data.data());
  OperationPtr operation;
  if (Status status = read_request(&request, context.identity().size, &operation); !status.ok())
    return status;
  return context.run(std::move(operation));
}

Status allgather(Context& context, const std::vector<std::byte>& data) {
  const auto count = static_cast<std::int64_t>(data.size());
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLGATHER;
  request.name = "rows";
  request.type = HVRUN_UINT8;
  request.ndim = 1;
  request.shape = &count;
  request.input = data.data();
  OperationPtr operation;
  if (Status status = read_request(&request, context.identity().size, &operation); !status.ok())
    return status;
  return context.run(std::move(operation));
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

TEST_CASE("a rank without memory for a gathered result ends the job with words, and nobody hangs") {
  const std::function<int(Context&)> body = [](Context& context) {
    const std::vector<std::byte> data(std::size_t{64} << 20);
    const bool is_poor = context.identity().rank == 1;
    if (is_poor && !limit_memory(std::size_t{100} << 20)) return 1;
    const Status status = allgather(context, data);
    if (status.message.find("out of memory") == std::string::npos) return 2;
    if (status.message.find("tensor 'rows'") == std::string::npos) return 3;
    if (is_poor) return status.code == StatusCode::kMemory ? 0 : 4;
    if (status.code != StatusCode::kPeerLost) return 5;
    return status.message.find("rank 1 gave up") == std::string::npos ? 6 : 0;
  };
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    Processes job(shape, body);
    for (int rank = 0; rank < 3; ++rank) CHECK(job.exit_code(0) == 0);
  }
}

// hvrun.h: "at most 5 s in all: a peer that hangs is left behind"; 300 ms here.
TEST_CASE("leaving ends at its limit when a peer hangs, in one host and between two") {
  CHECK(ContextParts().leave_limit == std::chrono::seconds(5));
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    Processes job(
        shape,
        [](Context& context) {
          if (context.identity().rank == 1) ::raise(SIGSTOP);
          const TimePoint start = now();
          context.shutdown();
          const auto took = now() - start;
          if (took < std::chrono::milliseconds(200)) return 1;
          return took < std::chrono::milliseconds(1500) ? 0 : 2;
        },
        std::chrono::milliseconds(300));
    job.await_stopped(1);
    CHECK(job.exit_code(0) == 0);
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

// Killed in the middle of operations, told by the agent; each survivor names it within 2 s, whether
// it waited, was in the middle of a large sum, or came later.
TEST_CASE("a killed process ends every other rank's operations with its name within 2 s") {
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
        if (now() - start > std::chrono::seconds(2)) return 4;
        return allreduce(context, "later", data).code == StatusCode::kPeerLost ? 0 : 5;
      }
    };
    Processes job(shape, body);
    for (int rank = 0; rank < 3; ++rank) {
      char byte;
      REQUIRE(::read(told[0], &byte, 1) == 1);
    }
    ::kill(job.children[1], SIGKILL);
    job.hub.announce_loss(1, "ended by signal 9 (Killed)");
    CHECK(job.exit_code(2) == 0);
    CHECK(job.exit_code(0) == 0);
    ::close(told[0]);
    ::close(told[1]);
  }
}
