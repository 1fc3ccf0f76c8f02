// How an agent that srun has started finds its hvrun: by TCP, with a key from its standard input.
// SPDX-License-Identifier: Apache-2.0
//
// Runs before the event loop does; every function here blocks, at most until its deadline.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"
#include "src/wire/agent_greeting.h"

namespace hv::launcher {

// "10.0.0.1:4711,[fd00::1]:4711", in the order in which they are tried. Nothing: malformed.
std::vector<SocketAddress> parse_addresses(const std::string& text);

// Reads one line of 64 hexadecimal digits, and no byte after it.
Status read_key(int fd, TimePoint deadline, JobKey* key);

struct ControlConnection {
  UniqueFd socket;  // non-blocking
  ControlKeys keys;
};
// Connects to the first of these addresses whose peer proves that it has the key. All are tried at
// once, and again a few times where hvrun's gate, which may be full, has closed the connection.
// agent: this agent's name at that gate.
Status connect_to_hvrun(const std::vector<SocketAddress>& addresses, const std::string& agent,
                        const JobKey& key, TimePoint deadline, ControlConnection* connection);

}  // namespace hv::launcher
