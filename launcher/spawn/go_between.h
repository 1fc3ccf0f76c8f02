// The process groups of commands that reach hosts: ended with all their children, at the latest
// with hvrun.
// SPDX-License-Identifier: Apache-2.0
//
// The kernel ends only hvrun's own children when hvrun ends, and of those only the ones that it was
// asked to. So every group is listed here from its start until it has been killed. A leader is not
// reaped before: as long as it is not, no other process can have its number, which is also the
// group's. For one thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>

#include "src/process/exit_status.h"

namespace hv::launcher {

// leader: a child of this process that leads a session of its own.
void list_go_between(pid_t leader);
// How it has ended, if it has; does not reap it.
std::optional<ExitStatus> look_at_go_between(pid_t leader);
// Nobody needs it any more: tells the whole group to end.
void dismiss_go_between(pid_t leader);
// Tells every group to end, and kills what has not ended after a moment (half a second in all, at
// most). The last thing that hvrun does, on every way out.
void end_go_betweens();

}  // namespace hv::launcher
