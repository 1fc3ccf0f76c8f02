// Signals: names, and the state that a new program must be born with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>

#include "src/base/signal_block.h"

namespace hv {

// In the child between fork and exec: all dispositions default, nothing blocked. Async-signal-safe.
void reset_signals_for_exec();

bool is_ignored(int number);

// Stops this process as SIGTSTP or SIGTTIN do where nobody handles them: not where no shell is left
// that could let it go on, which the kernel sees. Returns once it goes on; false: it never stood.
bool stop_as_the_kernel_would(int number);
// For Ctrl-Z. Without a terminal it is somebody's kill, and stops in any case.
bool stop_for_terminal();

// "SIGKILL (Killed)"; "signal 99" when it has no name.
std::string signal_text(int number);

}  // namespace hv
