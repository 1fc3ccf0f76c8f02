// Sockets with one owner: close-on-exec always; every failure is a Status in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"

namespace hv {

// A TCP listener, non-blocking, on every interface (IPv6 and IPv4 where the host has both); port 0:
// any free one.
Status listen_tcp(std::uint16_t port, UniqueFd* listener, std::uint16_t* bound_port);
// A bound but not listening TCP socket with SO_REUSEADDR, so that a rank may bind the same port and
// listen.
Status hold_tcp_port(std::uint16_t port, UniqueFd* holder, std::uint16_t* bound_port);
// Starts a connect; the socket is non-blocking and may still be connecting. TCP_NODELAY is set.
Status start_connect(const SocketAddress& address, UniqueFd* socket);
// After the socket has become writable: did it connect?
Status finish_connect(int socket, const SocketAddress& address);

// Unix stream sockets; "@name" is in the abstract namespace, anything else a path.
Status listen_unix(const std::string& name, UniqueFd* listener);
Status connect_unix(const std::string& name, UniqueFd* socket);
// The user at the other end of a Unix socket.
Status peer_user(int socket, std::uint32_t* uid, std::int32_t* pid);
// Hands a descriptor over, with one byte; receives one (blocking sockets).
Status send_descriptor(int socket, int fd);
Status receive_descriptor(int socket, UniqueFd* fd);

// Blocking, whole; a closed peer or a passed deadline is an error.
Status write_all(int fd, const void* bytes, std::size_t size, std::chrono::milliseconds timeout);
Status read_exactly(int fd, void* bytes, std::size_t size, std::chrono::milliseconds timeout);

Status set_nonblocking(int fd, bool nonblocking);

}  // namespace hv
