// Signals: names, masks, and the state that a new program must be born with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>

namespace hv {

// Blocks every signal in this thread for its lifetime.
class SignalBlock {
 public:
  SignalBlock();
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

// In the child between fork and exec: all dispositions default, nothing blocked. Async-signal-safe.
void reset_signals_for_exec();

bool is_ignored(int number);

// "SIGKILL (Killed)"; "signal 99" when it has no name.
std::string signal_text(int number);

}  // namespace hv
