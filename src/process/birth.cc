// SPDX-License-Identifier: Apache-2.0
#include "src/process/birth.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <optional>

namespace hv {
namespace {

// Written once, by main, before there are threads.
std::optional<rlimit>& limit_at_birth() {
  static std::optional<rlimit> limit;
  return limit;
}

}  // namespace

void open_missing_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() gives the lowest free number, which is fd: those below it are open.
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
}

void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit_at_birth() = limit;
}

void restore_open_file_limit() {
  if (limit_at_birth()) ::setrlimit(RLIMIT_NOFILE, &*limit_at_birth());
}

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

}  // namespace hv
