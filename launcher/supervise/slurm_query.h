// What Slurm's settings mean for a launch: `scontrol show config`, once, in the background.
// SPDX-License-Identifier: Apache-2.0
//
// On the job's io_context thread.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

// Starts the query where an agent runs in a step of Slurm: srun starts the agents, or hvrun itself
// is in a step. Does not block. The query ends after at most 1 s and reports its result as a phase.
void begin_slurm_query(LaunchContext& context);

// Waits for the end of the query. Afterwards job.slurm_signals_ranks has the answer; it is false
// where scontrol is missing, fails, is late or prints something else.
boost::asio::awaitable<void> await_slurm_query(Job& job);

}  // namespace hv::launcher
