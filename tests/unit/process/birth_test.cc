// What a program mends about the way it was started.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/birth.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/process/child.h"

using namespace hv;

namespace {

// In a process of its own, which can be spoilt; its exit code.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_null(int fd) {
  struct stat info {
  }, null{};
  return ::fstat(fd, &info) == 0 && ::stat("/dev/null", &null) == 0 && info.st_rdev == null.st_rdev;
}

// What a shell that is started from here says to a question.
std::string answer_of_child(const std::string& question) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const UniqueFd heard(ends[0]);
  UniqueFd said(ends[1]);
  Command command;
  command.argv = {"/bin/sh", "-c", question};
  ChildOptions options;
  options.stdout_fd = said.get();
  const SpawnResult spawned = spawn_child(command, options);
  said.reset();
  char bytes[100];
  const ssize_t got = ::read(heard.get(), bytes, sizeof bytes);
  if (spawned.pid > 0) ::waitpid(spawned.pid, nullptr, 0);
  return {bytes, static_cast<std::size_t>(got > 0 ? got : 0)};
}

}  // namespace

TEST_CASE("signals that are blocked at birth come, those that have come too") {
  CHECK(in_child([] {
          sigset_t all, after;
          sigfillset(&all);
          ::sigprocmask(SIG_SETMASK, &all, nullptr);
          unblock_signals();
          ::sigprocmask(SIG_SETMASK, nullptr, &after);
          return sigisemptyset(&after) ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          ::signal(SIGUSR1, [](int) { ::_exit(7); });
          sigset_t all;
          sigfillset(&all);
          ::sigprocmask(SIG_SETMASK, &all, nullptr);
          ::raise(SIGUSR1);
          unblock_signals();
          return 0;
        }) == 7);
}

TEST_CASE("closed standard streams become /dev/null, open ones stay") {
  for (int closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    CHECK(in_child([closed] {
            struct stat before[3], after[3];
            for (int fd = 0; fd < 3; ++fd) {
              ::fstat(fd, &before[fd]);
              if (closed >> fd & 1) ::close(fd);
            }
            open_missing_streams();
            int wrong = 0;
            for (int fd = 0; fd < 3; ++fd) {
              const bool is_same = ::fstat(fd, &after[fd]) == 0 &&
                                   after[fd].st_ino == before[fd].st_ino &&
                                   after[fd].st_dev == before[fd].st_dev;
              if (closed >> fd & 1 ? !is_null(fd) : !is_same) ++wrong;
            }
            return wrong;
          }) == 0);
  }
}

TEST_CASE("the limit of open files is raised here, and not for children") {
  CHECK(in_child([] {
          rlimit limit{};
          if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 100) return 1;
          const rlimit low{70, limit.rlim_max};
          if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
          raise_open_file_limit();
          if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != limit.rlim_max) return 3;
          return answer_of_child("ulimit -Sn") == "70\n" ? 0 : 4;
        }) == 0);
}

// The sanitizers bring an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory that was freed is had again without a page fault") {
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  CHECK(in_child([&faults] {
          keep_freed_memory();
          const auto use = [] {
            std::vector<char>(256 << 10).swap(*std::make_unique<std::vector<char>>());
          };
          use();
          const long before = faults();
          for (int i = 0; i < 100; ++i) use();
          return faults() - before < 64 ? 0 : 1;
        }) == 0);
}
#endif
