// A check: a launch up to the start of ranks, whose results are values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "launcher/check/check_input.h"
#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

// A host that fails keeps its error, and the others are checked. Throws Interrupted, and Error for
// a failure of this machine. Starts no rank and writes no file on a host.
boost::asio::awaitable<void> check_job(LaunchContext& context, CheckInput* input);

// "6 of 8 hosts answer, not yet: n3, n7", or how many have reported their facts; empty: all have.
std::string progress_of_check(const Job& job);

}  // namespace hv::launcher
