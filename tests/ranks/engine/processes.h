// A job of whole runtimes as processes that can be killed; the test itself plays their agents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <utility>

#include "bench/ranks/forked_store.h"
#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

namespace hv::runtime {

// Each rank a child of this process; body's value is its exit code. The parent plays the agent.
// Cases with Processes are the first of their file: CUDA does not survive a fork, and the fake
// one's threads may outlive the case that began them.
struct Processes {
  Processes(const JobShape& shape, const std::function<int(Context&)>& body,
            std::chrono::milliseconds leaves_within = ContextParts().leave_limit,
            Environment knobs = {})
      : hub(size_of(shape)), leave_limit(leaves_within), environment(std::move(knobs)) {
    REQUIRE_FALSE(Gpu::has_begun());
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
    parts.environment = environment;
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

  // Once each rank has written a byte there: it is in the middle of its work.
  void kill_when_all_told(int fd, int rank) {
    for (std::size_t one = 0; one < children.size(); ++one) {
      char byte;
      REQUIRE(::read(fd, &byte, 1) == 1);
    }
    ::kill(children[static_cast<std::size_t>(rank)], SIGKILL);
    hub.announce_loss(rank, "ended by signal 9 (Killed)");
  }

  ForkedStoreHub hub;
  std::chrono::milliseconds leave_limit;
  Environment environment;
  std::vector<pid_t> children;
};

}  // namespace hv::runtime
