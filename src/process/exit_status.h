// How a process ended, as a value and in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <string>

#include "src/process/signals.h"

namespace hv {

struct ExitStatus {
  bool by_signal = false;
  int code = 0;  // exit code, or signal number
  bool core_dumped = false;

  static ExitStatus from_wait(int status) {
    if (WIFSIGNALED(status)) return {true, WTERMSIG(status), WCOREDUMP(status) != 0};
    return {false, WEXITSTATUS(status), false};
  }
  bool clean() const { return !by_signal && code == 0; }
  // As a shell reports it: the code, or 128 + the signal.
  int shell_code() const { return by_signal ? 128 + code : code; }
  std::string text() const {
    if (!by_signal) return "exit code " + std::to_string(code);
    return signal_text(code) + (core_dumped ? ", core dumped" : "");
  }
};

}  // namespace hv
