// What a program of hvrun's mends about the way it was started, before anything else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv {

// /dev/null on those of the descriptors 0, 1 and 2 that are closed: else the next file, socket or
// epoll would get that number, and be written to as a stream.
void open_missing_streams();

// The soft limit of open files up to the hard one. Children that spawn_child() starts get the
// former one back: programs that use select(2) rely on it. In main, before there are threads.
void raise_open_file_limit();
// In the child between fork and exec; nothing when it was not raised. Async-signal-safe.
void restore_open_file_limit();

// No signal is blocked any more: a parent that blocks some in the thread that starts programs would
// have hvrun never hear of a Ctrl-C. In main, before there are threads, which inherit the mask.
void unblock_signals();

// Memory that was freed is kept for what comes next, up to 16 MiB: the ranks' output comes and goes
// in pieces for which the allocator would ask the system anew each time, a page fault every 4 KiB.
void keep_freed_memory();

}  // namespace hv
