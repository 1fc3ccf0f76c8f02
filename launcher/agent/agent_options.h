// What the agent's own command line says: nothing, or how to find hvrun where it has been started
// by srun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/net/address.h"

namespace hv::launcher {

struct AgentOptions {
  bool shows_version = false;
  // --connect ADDRESS:PORT,...: hvrun listens there; empty: it speaks over standard input and
  // output.
  std::vector<SocketAddress> hvrun;
  // --step NAME: before its node's name, what hvrun awaits it by.
  std::string step;
  // --remove-self: this program's file is a copy made for this job.
  bool removes_itself = false;
};

// arguments: without the program's name. Nothing: not understood.
std::optional<AgentOptions> parse_agent_options(const std::vector<std::string>& arguments);

}  // namespace hv::launcher
