// Sockets with one owner: close-on-exec always; every failure is a Status in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"
#include "src/net/port_range.h"

namespace hv {

// A TCP listener, non-blocking, on every interface (IPv6 and IPv4 where the host has both); port 0:
// any free one.
Status listen_tcp(std::uint16_t port, UniqueFd* listener, std::uint16_t* bound_port);
// The same on a free port of that range. They are tried in a circle from a place that depends on
// `start`, so that many processes that listen at once do not all try the same one first. Ports that
// somebody holds (below), or that old connections still have, are the last resort.
Status listen_tcp_in(const PortRange& range, std::uint32_t start, UniqueFd* listener,
                     std::uint16_t* bound_port);
// A bound but not listening TCP socket with SO_REUSEADDR, so that a rank may bind the same port and
// listen.
Status hold_tcp_port(std::uint16_t port, UniqueFd* holder, std::uint16_t* bound_port);
// The same of that range: its last one, or the nearest in the circle that is free.
Status hold_tcp_port_in(const PortRange& range, UniqueFd* holder, std::uint16_t* bound_port);
// Starts a connect; the socket is non-blocking and may still be connecting. TCP_NODELAY is set.
Status start_connect(const SocketAddress& address, UniqueFd* socket);
// After the socket has become writable: did it connect?
Status finish_connect(int socket, const SocketAddress& address);

// Unix stream sockets; "@name" is in the abstract namespace, anything else a path.
Status listen_unix(const std::string& name, UniqueFd* listener);
Status connect_unix(const std::string& name, UniqueFd* socket);
// Never waits; is_full: the listener has no room for more connections.
Status try_connect_unix(const std::string& name, UniqueFd* socket, bool* is_full);
// The user at the other end of a Unix socket.
Status peer_user(int socket, std::uint32_t* uid, std::int32_t* pid);
// Hands a descriptor over, with one byte; receives one (blocking sockets).
Status send_descriptor(int socket, int fd);
Status receive_descriptor(int socket, UniqueFd* fd);

// Both block until all bytes are transferred. A closed peer or the timeout is an error.
Status send_all(int fd, const void* bytes, std::size_t size, std::chrono::milliseconds timeout);
Status read_exactly(int fd, void* bytes, std::size_t size, std::chrono::milliseconds timeout);
// Their timeout: what is left until then, nothing once it has passed.
std::chrono::milliseconds time_until(TimePoint deadline);

Status set_nonblocking(int fd, bool nonblocking);

}  // namespace hv
