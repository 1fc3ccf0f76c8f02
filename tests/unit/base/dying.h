// Runs code that shall end the process, in a child, and gives back how it ended and what it said
// last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "src/base/unique_fd.h"

namespace hv {

struct Death {
  int signal = 0;  // 0: it came to its end
  std::string last_words;
};

template <class Function>
Death death_of(Function function) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(write_end.get(), 2);
    function();
    ::_exit(0);
  }
  write_end.reset();
  Death death;
  char buffer[512];
  for (ssize_t got; (got = ::read(read_end.get(), buffer, sizeof buffer)) > 0;)
    death.last_words.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  if (::waitpid(pid, &status, 0) == pid && WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  return death;
}

}  // namespace hv
