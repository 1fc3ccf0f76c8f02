// After a failure: runs the probes that fit it, and reports their findings next to it, with the
// texts of a check.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>

#include "launcher/check/failure_signs.h"
#include "launcher/check/probe.h"
#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

// Asks the agents of all hosts that still answer, because a difference between hosts is a reason,
// too. Drivers of GPUs only on 64 hosts, beginning with failed_host (a position in the epoch),
// because each host may need the program sent. Takes at most `time`, and none where no probe fits.
// Throws nothing.
boost::asio::awaitable<void> probe_after_failure(LaunchContext& context,
                                                 const FittingProbes& fitting, Duration time,
                                                 std::size_t failed_host = 0);

// Applies these probes to the hosts' answers so far, and lists the probes without an answer.
CheckReport findings_after_failure(const LaunchContext& context,
                                   const std::set<std::string>& probes);

// The probes that judge a lost host, after a second agent has checked it, or could not.
const std::set<std::string>& probes_of_lost_host();
wire::CheckRequest request_to_lost_host(const LaunchContext& context);

}  // namespace hv::launcher
