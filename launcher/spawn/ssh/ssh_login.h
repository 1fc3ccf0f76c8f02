// Logging in by public key: ssh-agent and key files; nobody is ever asked for a password.
// SPDX-License-Identifier: Apache-2.0
//
// Order: key files that the user has named (a full agent must not use up the server's patience
// first), the agent's keys, ssh's usual files.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "launcher/spawn/ssh/ssh_config.h"
#include "launcher/spawn/ssh/ssh_session.h"

namespace hv::launcher {

// Why a login was refused, for the message.
struct LoginRefusal {
  std::string reason;  // "b offers publickey, password; tried: ..."
  std::string hint;
  bool gssapi_is_left = false;  // the server takes Kerberos, which the system's ssh could do
};

// agent_socket: SSH_AUTH_SOCK, or empty. Nothing: logged in. A session that was closed meanwhile
// counts as refused.
boost::asio::awaitable<std::optional<LoginRefusal>> log_in(SshSession& session,
                                                           const SshConfig& config,
                                                           std::string host,
                                                           std::string agent_socket);

}  // namespace hv::launcher
