// SPDX-License-Identifier: Apache-2.0
#include "src/net/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace hv {
namespace {

std::uint16_t local_port(int socket) {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&raw), &size);
  return SocketAddress::from_raw(reinterpret_cast<sockaddr*>(&raw), size).port();
}

// kShared: a port that others have bound the same way and nobody listens on may be bound, too.
// kAlone: it may not; from then on those who share may bind it.
enum class Binding { kShared, kAlone };

// Binds on "::" for both families where IPv6 exists, else on 0.0.0.0.
Status bind_everywhere(std::uint16_t port, UniqueFd* socket, Binding how = Binding::kShared) {
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    const int on = 1, off = 0;
    if (how == Binding::kShared) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const SocketAddress any = SocketAddress::any(family, port);
    if (::bind(fd.get(), any.raw(), any.size()) == 0) {
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      *socket = std::move(fd);
      return Status::success();
    }
    if (errno == EADDRINUSE) break;
  }
  return system_status("bind TCP port " + std::to_string(port), errno);
}

struct UnixAddress {
  sockaddr_un raw{};
  socklen_t size = 0;
};

Status unix_address(const std::string& name, UnixAddress* address) {
  if (name.empty() || name.size() >= sizeof address->raw.sun_path) {
    return {StatusCode::kArgument, "socket name '" + name + "' is empty or too long"};
  }
  address->raw.sun_family = AF_UNIX;
  std::memcpy(address->raw.sun_path, name.data(), name.size());
  const bool abstract = name[0] == '@';
  if (abstract) address->raw.sun_path[0] = '\0';
  address->size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return Status::success();
}

// Waits until fd is ready for events or the deadline passes.
Status wait_for(int fd, short events, TimePoint deadline, const char* doing) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
    if (left < 0) return {StatusCode::kSystem, std::string(doing) + ": timed out"};
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long long>(left + 1, 1 << 30)));
    if (ready > 0) return Status::success();
    if (ready < 0 && errno != EINTR) return system_status(doing, errno);
  }
}

Status listen_on(std::uint16_t port, Binding how, UniqueFd* listener, std::uint16_t* bound_port) {
  UniqueFd made;
  if (Status status = bind_everywhere(port, &made, how); !status.ok()) return status;
  // Two may have bound the same port (SO_REUSEADDR); only one of them comes to listen there.
  if (::listen(made.get(), 1024) != 0)
    return system_status("listen on TCP port " + std::to_string(local_port(made.get())), errno);
  *bound_port = local_port(made.get());
  *listener = std::move(made);
  return Status::success();
}

Status hold_on(std::uint16_t port, Binding how, UniqueFd* holder, std::uint16_t* bound_port) {
  if (Status status = bind_everywhere(port, holder, how); !status.ok()) return status;
  *bound_port = local_port(holder->get());
  return Status::success();
}

// take(port, how) for each port of the range, until one is good.
template <typename Take>
Status take_one_of(const PortRange& range, std::uint32_t start, Take take) {
  const auto count = static_cast<std::uint32_t>(range.count());
  Status last{StatusCode::kSystem, "it is kept for MASTER_PORT"};
  for (const Binding how : {Binding::kAlone, Binding::kShared}) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto port = static_cast<std::uint16_t>(range.first + (start % count + i) % count);
      if (port == range.kept_for_others) continue;
      last = take(port, how);
      if (last.ok()) return last;
    }
  }
  return {last.code, "no port of " + range.text() + " is free (" + std::to_string(count) +
                         " tried; the last: " + last.message + ")"};
}

}  // namespace

Status listen_tcp(std::uint16_t port, UniqueFd* listener, std::uint16_t* bound_port) {
  return listen_on(port, Binding::kShared, listener, bound_port);
}

Status listen_tcp_in(const PortRange& range, std::uint32_t start, UniqueFd* listener,
                     std::uint16_t* bound_port) {
  if (range.is_any()) return listen_tcp(0, listener, bound_port);
  return take_one_of(range, start, [&](std::uint16_t port, Binding how) {
    return listen_on(port, how, listener, bound_port);
  });
}

Status hold_tcp_port(std::uint16_t port, UniqueFd* holder, std::uint16_t* bound_port) {
  return hold_on(port, Binding::kShared, holder, bound_port);
}

Status hold_tcp_port_in(const PortRange& range, UniqueFd* holder, std::uint16_t* bound_port) {
  if (range.is_any()) return hold_tcp_port(0, holder, bound_port);
  const auto last = static_cast<std::uint32_t>(range.count() - 1);
  return take_one_of(range, last, [&](std::uint16_t port, Binding how) {
    return hold_on(port, how, holder, bound_port);
  });
}

Status start_connect(const SocketAddress& address, UniqueFd* socket) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_status("make a socket", errno);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), address.raw(), address.size()) != 0 && errno != EINPROGRESS) {
    return system_status("connect to " + address.text(), errno);
  }
  *socket = std::move(fd);
  return Status::success();
}

Status finish_connect(int socket, const SocketAddress& address) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return system_status("connect to " + address.text(), error);
  return Status::success();
}

Status listen_unix(const std::string& name, UniqueFd* listener) {
  UnixAddress address;
  if (Status status = unix_address(name, &address); !status.ok()) return status;
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_status("make a Unix socket", errno);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address.raw), address.size) != 0 ||
      ::listen(fd.get(), 1024) != 0) {
    return system_status("listen on Unix socket " + name, errno);
  }
  *listener = std::move(fd);
  return Status::success();
}

Status connect_unix(const std::string& name, UniqueFd* socket) {
  UnixAddress address;
  if (Status status = unix_address(name, &address); !status.ok()) return status;
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_status("make a Unix socket", errno);
  // It waits only for room among the listener's connections; cut short by a signal it has done
  // nothing.
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address.raw), address.size) != 0) {
    if (errno != EINTR) return system_status("connect to Unix socket " + name, errno);
  }
  *socket = std::move(fd);
  return Status::success();
}

Status try_connect_unix(const std::string& name, UniqueFd* socket, bool* is_full) {
  UnixAddress address;
  if (Status status = unix_address(name, &address); !status.ok()) return status;
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_status("make a Unix socket", errno);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address.raw), address.size) != 0) {
    *is_full = errno == EAGAIN;
    return system_status("connect to Unix socket " + name, errno);
  }
  *socket = std::move(fd);
  return Status::success();
}

Status peer_user(int socket, std::uint32_t* uid, std::int32_t* pid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return system_status("ask who connected", errno);
  *uid = peer.uid;
  *pid = peer.pid;
  return Status::success();
}

Status send_descriptor(int socket, int fd) {
  char byte = 'd';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return system_status("hand over a descriptor", errno);
  }
  return Status::success();
}

Status receive_descriptor(int socket, UniqueFd* fd) {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // the kernel drops any further descriptor
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return system_status("receive a descriptor", errno);
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  UniqueFd received;
  if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    received.reset(number);
  }
  if (got == 1 && !received && (message.msg_flags & MSG_CTRUNC)) {
    return {StatusCode::kSystem,
            "receive a descriptor: there was no room for it; does this process have as many files "
            "open as it may (ulimit -n)?"};
  }
  if (got != 1 || !received || (message.msg_flags & MSG_CTRUNC)) {
    return {StatusCode::kSystem,
            "receive a descriptor: the other end closed or sent something else"};
  }
  *fd = std::move(received);
  return Status::success();
}

Status send_all(int fd, const void* bytes, std::size_t size, std::chrono::milliseconds timeout) {
  const TimePoint deadline = now() + timeout;
  const auto* data = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t wrote = ::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote > 0) {
      data += wrote;
      size -= static_cast<std::size_t>(wrote);
    } else if (wrote < 0 && errno == EAGAIN) {
      if (Status status = wait_for(fd, POLLOUT, deadline, "send"); !status.ok()) return status;
    } else if (wrote < 0 && errno != EINTR) {
      return system_status("send", errno);
    }
  }
  return Status::success();
}

Status read_exactly(int fd, void* bytes, std::size_t size, std::chrono::milliseconds timeout) {
  const TimePoint deadline = now() + timeout;
  auto* data = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(fd, data, size, MSG_DONTWAIT);
    if (got > 0) {
      data += got;
      size -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      return {StatusCode::kSystem, "receive: the other end closed the connection"};
    } else if (errno == EAGAIN) {
      if (Status status = wait_for(fd, POLLIN, deadline, "receive"); !status.ok()) return status;
    } else if (errno != EINTR) {
      return system_status("receive", errno);
    }
  }
  return Status::success();
}

std::chrono::milliseconds time_until(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now());
  return std::max(left, std::chrono::milliseconds(0));
}

Status set_nonblocking(int fd, bool nonblocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 ||
      ::fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) != 0) {
    return system_status("change a descriptor's mode", errno);
  }
  return Status::success();
}

}  // namespace hv
