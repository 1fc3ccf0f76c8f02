// A look at the user's ssh-agent (draft-miller-ssh-agent): which keys it holds, without blocking.
// SPDX-License-Identifier: Apache-2.0
//
// libssh's own talk with the agent blocks. So the agent is asked here first; one that does not
// answer is left out.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct AgentKey {
  std::string type;  // "ssh-ed25519"
  std::string blob;  // the public key as in the protocol
  std::string comment;
};

struct AgentKeys {
  std::vector<AgentKey> keys;
  std::string trouble;  // why there are none: "does not answer"; empty when it simply holds none
};

// The answer to "request identities", without its length word. nothing: it is none.
bool parse_agent_identities(std::string_view message, std::vector<AgentKey>* keys);
// socket: its path.
boost::asio::awaitable<AgentKeys> ask_ssh_agent(std::string socket);

std::string base64(std::string_view bytes);

}  // namespace hv::launcher
