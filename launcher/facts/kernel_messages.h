// The kernel's log as it comes out of /dev/kmsg. Never waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hv::launcher {

// Calls take for each line "priority,sequence,microseconds,flags;message" from where the descriptor
// (O_NONBLOCK) stands to the log's end. Returns errno of a read that failed, else 0.
int read_kernel_messages(int log, const std::function<void(std::string_view line)>& take);

// Whether numbers of processes that the kernel and drivers tell are those of this process's /proc.
// A container has a PID namespace of its own, the kernel's log and NVIDIA's driver have the first's
// numbers. root: before /proc.
bool is_in_first_pid_namespace(const std::string& root = "");

}  // namespace hv::launcher
