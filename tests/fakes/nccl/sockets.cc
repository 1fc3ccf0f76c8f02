// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

struct Place {
  sockaddr_un address = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// The zero before the name makes it one of no file system.
Place place_of(const std::string& name) {
  Place place;
  place.address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof place.address.sun_path) refuse("a socket's name is too long");
  std::memcpy(place.address.sun_path + 1, name.data(), name.size());
  place.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return place;
}

UniqueFd make_socket(int type) {
  UniqueFd made(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!made) refuse(std::string("make a socket: ") + std::strerror(errno));
  return made;
}

std::ptrdiff_t moved_of(ssize_t result) {
  if (result >= 0) return result;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

}  // namespace

StopSign::StopSign() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) refuse(std::string("make an eventfd: ") + std::strerror(errno));
}

void StopSign::set() {
  is_set_ = true;
  const std::uint64_t one = 1;
  if (::write(event_.get(), &one, sizeof one) != sizeof one) refuse("set a sign");
}

UniqueFd listen_at(const std::string& name, int type) {
  UniqueFd made = make_socket(type);
  const Place place = place_of(name);
  if (::bind(made.get(), place.get(), place.length) != 0 || ::listen(made.get(), 1024) != 0)
    refuse("listen at " + name + ": " + std::strerror(errno));
  return made;
}

UniqueFd connect_to(const std::string& name, int type) {
  UniqueFd made = make_socket(type);
  const Place place = place_of(name);
  int result = -1;
  do result = ::connect(made.get(), place.get(), place.length);
  while (result != 0 && errno == EINTR);
  if (result != 0) made.reset();
  return made;
}

int await_readable(const std::vector<int>& fds, const StopSign& stop) {
  std::vector<pollfd> polled = {{stop.fd(), POLLIN, 0}};
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
  for (;;) {
    ::poll(polled.data(), polled.size(), -1);
    if (stop.is_set()) return -1;
    for (const pollfd& one : polled)
      if (one.revents != 0) return one.fd;
  }
}

bool send_all(int fd, const void* bytes, std::size_t count) {
  ssize_t result = -1;
  do result = ::send(fd, bytes, count, MSG_NOSIGNAL);
  while (result < 0 && errno == EINTR);
  return result == static_cast<ssize_t>(count);
}

bool receive_all(int fd, void* bytes, std::size_t count) {
  ssize_t result = -1;
  do result = ::recv(fd, bytes, count, MSG_WAITALL);
  while (result < 0 && errno == EINTR);
  return result == static_cast<ssize_t>(count);
}

std::ptrdiff_t send_some(int fd, const void* bytes, std::size_t count) {
  return moved_of(::send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::ptrdiff_t receive_some(int fd, void* bytes, std::size_t count) {
  const ssize_t result = ::recv(fd, bytes, count, MSG_DONTWAIT);
  return result == 0 ? -1 : moved_of(result);
}

}  // namespace hv::fake
