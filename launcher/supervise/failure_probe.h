// After a failure: the probes that fit it are run, and what they find is told beside it, in the
// words of a check.
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

// Asks the agents that still answer, of all hosts, since what differs between them is a reason,
// too; the drivers of GPUs only of the first 64, beginning with failed_host, since each may need
// the program for that sent. Takes no longer than time, and none where nothing fits. Throws
// nothing.
boost::asio::awaitable<void> look_after_failure(LaunchContext& context,
                                                const FittingProbes& fitting, Duration time,
                                                std::size_t failed_host = 0);

// What is known of the hosts by then, judged by these probes; and which of them had no answer.
CheckReport found_after_failure(const LaunchContext& context, const std::set<std::string>& probes);

// By which a host that was lost is judged once a second agent has looked at it, or could not.
const std::set<std::string>& probes_of_lost_host();
wire::CheckRequest request_to_lost_host(const LaunchContext& context);

}  // namespace hv::launcher
