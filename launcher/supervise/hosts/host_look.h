// What agents are asked to look at on their hosts, and what is known of each by then, as a judge
// takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/check/check_input.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "src/wire/check.h"

namespace hv::launcher {

// Its agent answers.
bool is_reached(const HostState& host);

// time: of each probe. probes: by name; empty: all.
wire::CheckRequest check_request(const LaunchContext& context, Duration time,
                                 std::vector<std::string> probes = {});

// In the job's order.
std::vector<CheckedHost> checked_hosts(const LaunchContext& context);

}  // namespace hv::launcher
