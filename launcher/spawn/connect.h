// One TCP connection to a host that has several addresses: the first that answers wins.
// SPDX-License-Identifier: Apache-2.0
//
// In the given order, the next one 250 ms after the last without waiting for its fate (as RFC 8305
// proposes).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "launcher/spawn/start_deadline.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"

namespace hv::launcher {

struct Connection {
  UniqueFd socket;  // non-blocking, close-on-exec
  SocketAddress address;
};

// host: for messages. Throws Error(kStart) with each address's reason, kTimeout at the deadline.
boost::asio::awaitable<Connection> connect_first(std::string host,
                                                 std::vector<SocketAddress> addresses,
                                                 StartDeadline& deadline);

}  // namespace hv::launcher
