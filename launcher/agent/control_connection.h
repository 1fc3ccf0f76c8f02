// How an agent that srun has started finds its hvrun: by TCP, with a key from its standard input.
// SPDX-License-Identifier: Apache-2.0
//
// Before the event loop runs; everything here waits, at most until a deadline.
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

// One line of 64 hexadecimal digits; not a byte more is read.
Status read_key(int fd, TimePoint deadline, JobKey* key);

struct ControlConnection {
  UniqueFd socket;  // non-blocking
  ControlKeys keys;
};
// The first of these addresses at which somebody proves that he has the key; all are tried at
// once, and a few times where hvrun's gate, which may be full, has closed the connection. agent:
// its name at that gate.
Status connect_to_hvrun(const std::vector<SocketAddress>& addresses, const std::string& agent,
                        const JobKey& key, TimePoint deadline, ControlConnection* connection);

}  // namespace hv::launcher
