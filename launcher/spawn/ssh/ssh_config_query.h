// Asks the system's ssh for the configuration in force for a host (`ssh -G`), without blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "launcher/spawn/spawner.h"
#include "launcher/spawn/ssh/ssh_config.h"
#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

struct SshChoice {
  SshConfig config;
  std::string system_ssh_reason;  // not empty: libssh will not do
};

// The home and the user as ssh takes them: from the password database, not from HOME.
SshSurroundings ssh_surroundings(const std::string& host);

// Throws Error(kStart) when ssh refuses its own configuration, kTimeout at the deadline.
boost::asio::awaitable<SshChoice> query_ssh_config(HostTarget host, const SpawnOptions& options,
                                                   StartDeadline& deadline);

}  // namespace hv::launcher
