// The launch up to the ranks' start, without their start: what hosts tell on the way, as values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "launcher/check/check_input.h"
#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

// A host that fails keeps its reason, and the others are looked at. Throws Interrupted, and Error
// for what is wrong with this machine. No rank is started, and no host written to.
boost::asio::awaitable<void> check_job(LaunchContext& context, CheckInput* input);

// "6 of 8 hosts answer, not yet: n3, n7", or of how many it is known what they are like; empty:
// all is known.
std::string progress_of_check(const Job& job);

}  // namespace hv::launcher
