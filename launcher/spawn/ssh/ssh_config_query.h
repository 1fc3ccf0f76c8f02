// Asks the system's ssh for the configuration in force for a host (`ssh -G`), without blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "launcher/spawn/ssh/ssh_config.h"
#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

struct SshChoice {
  SshConfig config;
  std::string system_ssh_reason{};  // not empty: libssh will not do
  std::string gate{};               // login_gate(), for the system's ssh
  bool has_own_route = false;       // see has_own_route()
};

// The home and the user as ssh takes them: from the password database, not from HOME.
SshSurroundings ssh_surroundings(const std::string& host);

// Without an ssh that runs here: its defaults, with a warning. Throws Error(kStart) when ssh
// refuses its own configuration, kTimeout at the deadline.
boost::asio::awaitable<SshChoice> query_ssh_config(HostTarget host, const SpawnOptions& options,
                                                   StartDeadline& deadline);

// login_gate() for an ssh command whose last word is the host; host where that ssh does not tell.
// Throws Error(kTimeout) at the deadline.
boost::asio::awaitable<std::string> query_login_gate(std::vector<std::string> ssh_command,
                                                     std::string host, const SpawnOptions& options,
                                                     StartDeadline& deadline);

}  // namespace hv::launcher
