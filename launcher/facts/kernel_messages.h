// The kernel's log as it comes out of /dev/kmsg. Never waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace hv::launcher {

// Calls take for each line "priority,sequence,microseconds,flags;message" from where the descriptor
// (O_NONBLOCK) stands to the log's end. Returns errno of a read that failed, else 0.
int read_kernel_messages(int log, const std::function<void(std::string_view line)>& take);

}  // namespace hv::launcher
