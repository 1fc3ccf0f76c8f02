// Whether a rank's program may hold text back: C's printf does where it writes to a pipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace hv::launcher {

// From /proc, while the rank runs; reads a few small files. False where it cannot be known, where
// stdbuf has the program write each line, and where one of the rank's processes is a shell or an
// interpreter, which write at once: the rank runs a script then, or wraps one.
bool may_hold_text(pid_t rank, const std::string& proc = "/proc");

}  // namespace hv::launcher
