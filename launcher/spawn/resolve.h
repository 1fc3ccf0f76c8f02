// Names to addresses, each in a thread of its own: a dead name delays no other host.
// SPDX-License-Identifier: Apache-2.0
//
// Asio's resolver has one thread for all names, so ten seconds for a dead one would be ten seconds
// for all.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/spawn/start_deadline.h"
#include "src/base/clock.h"
#include "src/net/address.h"

namespace hv::launcher {

struct Resolution {
  std::vector<SocketAddress> addresses;  // in the order to try them
  std::string reason;                    // why there are none, in the resolver's words
};

// Blocking; called in a thread that may outlive everybody who asked. family: AF_UNSPEC, AF_INET or
// AF_INET6.
using ResolveFunction =
    std::function<Resolution(const std::string& name, std::uint16_t port, int family)>;
Resolution resolve_by_system(const std::string& name, std::uint16_t port, int family);

struct ResolveQuery {
  std::string host;  // as the user wrote it, for messages
  std::string name;  // what to look up
  std::uint16_t port = 22;
  int family = 0;
};

// At least one address. Throws Error(kStart) for an unknown name, kTimeout at the deadline.
boost::asio::awaitable<std::vector<SocketAddress>> resolve(
    ResolveQuery query, StartDeadline& deadline, ResolveFunction look_up = resolve_by_system);

// The addresses of each name, as "10.0.0.1": none for a name that has none, or whose answer
// takes longer than `limit`. Blocks that long at most; asks for 32 names at a time.
std::vector<std::vector<std::string>> resolve_all(const std::vector<std::string>& names,
                                                  Duration limit,
                                                  ResolveFunction look_up = resolve_by_system);

// As resolve_all. All names of this machine also have kThisMachine among their addresses, so that
// "localhost", an address of a loopback interface and a host that leads here are one host.
inline constexpr char kThisMachine[] = "this machine";
std::vector<std::vector<std::string>> resolve_or_own(const std::vector<std::string>& names,
                                                     Duration limit,
                                                     const std::string& own_hostname,
                                                     ResolveFunction look_up = resolve_by_system);

}  // namespace hv::launcher
