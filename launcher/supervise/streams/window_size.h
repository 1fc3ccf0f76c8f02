// The size of the ranks' terminals (--pty): that of hvrun's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/supervise/job.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The widest label takes its width from the columns, so that a bar that fills a line stays on one.
// 80 columns and 24 rows where neither stdout nor stderr nor stdin is a terminal.
wire::WindowSize window_of_ranks(const Job& job);

}  // namespace hv::launcher
