// From a JobSpec to running ranks: the steps of host_steps.h, then wire, launch, go.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing is started on any host before every host has said that it can.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

// Runs `scontrol show config` once, in the background of a launch, for the settings of Slurm that
// its agents need (launcher/plan/slurm_settings.h). On the job's io_context thread.
// Starts the query where an agent runs in a step of Slurm: srun starts the agents, or hvrun itself
// is in a step. Does not block. The query ends after at most 1 s and reports its result as a phase.
void begin_slurm_query(LaunchContext& context);

// Waits for the end of the query. Afterwards job.slurm_signals_ranks has the answer; it is false
// where scontrol is missing, fails, is late or prints something else.
boost::asio::awaitable<void> await_slurm_query(Job& job);

boost::asio::awaitable<void> launch_job(LaunchContext& context);

}  // namespace hv::launcher
