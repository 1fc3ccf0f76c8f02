// The agent's command line: empty, or, where srun has started it, how to connect to hvrun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/net/address.h"

namespace hv::launcher {

struct AgentOptions {
  bool shows_version = false;
  // --connect ADDRESS:PORT,...: where hvrun listens; empty: hvrun is at standard input and output.
  std::vector<SocketAddress> hvrun;
  // --step NAME: with the node's name, the name under which hvrun expects this agent.
  std::string step;
  // --lost-after SECONDS: how long a silent hvrun is waited for, until SetupRequest says it again.
  std::optional<Duration> lost_after;
  // --remove-self: this program's file is a copy made for this job.
  bool removes_itself = false;
};

// arguments: without the program's name. Nothing: usage error.
std::optional<AgentOptions> parse_agent_options(const std::vector<std::string>& arguments);

}  // namespace hv::launcher
