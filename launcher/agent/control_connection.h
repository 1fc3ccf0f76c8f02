// How an agent that srun has started finds its hvrun: by TCP, with a key from its standard input.
// SPDX-License-Identifier: Apache-2.0
//
// Runs before the event loop does; every function here blocks. hvrun may be stopped meanwhile
// (Ctrl-Z, SIGSTOP) for as long as its user likes, so an agent waits for it as long as its Slurm
// step lives: when hvrun is gone srun ends, and Slurm ends the step.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"
#include "src/wire/agent_greeting.h"

namespace hv::launcher {

// "10.0.0.1:4711,[fd00::1]:4711". Nothing: malformed.
std::vector<SocketAddress> parse_addresses(const std::string& text);

// Reads one line of 64 hexadecimal digits, and no byte after it. TimePoint::max(): waits for it as
// long as the descriptor is open.
Status read_key(int fd, TimePoint deadline, JobKey* key);

struct ControlConnection {
  UniqueFd socket;  // non-blocking
  ControlKeys keys;
};
// How long an agent waits.
struct ConnectWait {
  // For the first address that accepts a connection. A stopped hvrun does, as its kernel keeps the
  // connection for it.
  Duration to_connect = std::chrono::seconds(30);
  // The standard input, which is open while hvrun and srun live. Once it has ended, and where there
  // is none (-1), to_connect limits the whole attempt, from its beginning.
  int life = -1;
};
// Connects to the first of these addresses whose peer proves that it has the key. The handshakes
// with all of them run at once, and again a few times where hvrun's gate, which may be full, has
// closed the connection. agent: this agent's name at that gate.
Status connect_to_hvrun(const std::vector<SocketAddress>& addresses, const std::string& agent,
                        const JobKey& key, const ConnectWait& wait, ControlConnection* connection);

}  // namespace hv::launcher
