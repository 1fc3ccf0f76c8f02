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

// "SIGKILL (Killed)"; "signal 99" when it has no name.
std::string signal_text(int number);

}  // namespace hv
