// Starts one rank: pipes or a terminal, then the process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/agent/ranks/output_pump.h"
#include "launcher/agent/ranks/rank_process.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/process/command.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// A pseudo-terminal for one rank.
struct Pty {
  UniqueFd master;  // non-blocking
  UniqueFd slave;
};

Status open_pty(const wire::WindowSize& size, Pty* pty);
// terminal: either side of it.
Status set_window_size(int terminal, const wire::WindowSize& size);

// A pipe from a rank to the agent, whose end is non-blocking. Both ends are closed at exec.
Status open_pipe_from_rank(UniqueFd* ours, UniqueFd* ranks);

struct StartOptions {
  bool pty = false;
  wire::WindowSize window{};
  std::uint32_t credit_bytes = 0;
  std::size_t pipe_bytes = 64 << 10;  // requested for stdout
  std::string cgroup;                 // directory of the cgroup it starts in; empty: none
  std::vector<int> passed_fds{};      // inherited by the rank
  std::uint32_t umask = 022;
};

struct StreamCallbacks {
  std::function<void()> on_stream_end;
  std::function<void(std::uint32_t bytes)> on_input_taken;
};

// On failure no process runs, and the status says what failed.
Status start_rank(PumpContext& context, const Command& command, const wire::LaunchRank& launch,
                  const StartOptions& options, const StreamCallbacks& callbacks,
                  std::unique_ptr<RankProcess>* rank);

// A hint for that failure.
std::string start_advice(const Status& failure);

// A pipe size that is fast for few ranks and stays within what the kernel grants a user for many.
std::size_t pipe_bytes_for(std::size_t ranks);

}  // namespace hv::launcher
