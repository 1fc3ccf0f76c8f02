// Tests of src/base/fork_guarded_fd.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/fork_guarded_fd.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <functional>

using namespace hv;

namespace {

UniqueFd open_null() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

bool holds_in_child(const std::function<bool()>& condition) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(condition() ? 0 : 1);
  int result = 0;
  return ::waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

}  // namespace

TEST_CASE("a guarded descriptor is closed in a forked child and open in its parent") {
  const ForkGuardedFd guarded{open_null()};
  const UniqueFd other = open_null();
  CHECK(holds_in_child([&] { return !is_open(guarded.get()) && is_open(other.get()); }));
  CHECK(is_open(guarded.get()));
}

TEST_CASE("a guard moves with its descriptor and ends with it") {
  ForkGuardedFd first{open_null()};
  const int fd = first.get();
  ForkGuardedFd second{open_null()};
  const int replaced = second.get();
  second = std::move(first);
  CHECK_FALSE(is_open(replaced));
  CHECK(holds_in_child([&] { return !is_open(fd); }));
  second.reset();
  CHECK_FALSE(is_open(fd));
  REQUIRE(::dup2(STDERR_FILENO, fd) == fd);  // its number may be anybody's now
  CHECK(holds_in_child([&] { return is_open(fd); }));
  ::close(fd);
}
