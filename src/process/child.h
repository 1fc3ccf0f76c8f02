// Starting a child process: own session, clean signals, only the descriptors it is given, and the
// reason when exec fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/core_mask.h"
#include "src/base/unique_fd.h"
#include "src/process/command.h"

namespace hv {

struct ChildOptions {
  int stdin_fd = -1;   // -1: /dev/null
  int stdout_fd = -1;  // -1: the caller's
  int stderr_fd = -1;
  std::vector<int> passed_fds{};      // stay open in the child, under their numbers
  bool controlling_terminal = false;  // stdout_fd is a terminal and becomes the session's
  bool die_with_parent = true;        // PDEATHSIG SIGKILL; tied to the *thread* that calls
  bool may_be_traced = false;         // by this process and its children, under Yama's scope 1
  std::optional<mode_t> umask{};      // none: the caller's
  CoreMask cores;                     // that it may run on; empty: the caller's
  std::string cgroup;  // directory of a cgroup v2 that the child starts in; empty: the caller's
};

struct SpawnResult {
  pid_t pid = -1;     // -1: failed
  int error = 0;      // errno of the step that failed
  std::string doing;  // that step: "chdir to /x", "exec /bin/y"
};

// Forks and executes. Returns after exec has succeeded or failed (a failed child is reaped).
// The child has the limit of open files that this process was started with (birth.h).
// A file that is executable but no program the kernel knows is run by /bin/sh, as execvp does.
SpawnResult spawn_child(const Command& command, const ChildOptions& options);

}  // namespace hv
