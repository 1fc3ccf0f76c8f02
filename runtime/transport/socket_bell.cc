// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/socket_bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/check.h"

namespace hv::runtime {
namespace {

// Too few descriptors are no error here: there is the other way.
ForkGuardedFd eventfd_of(const HostMemory& memory, int sockets) {
  if (memory.ranks() > 1 || sockets < 0) return {};
  return ForkGuardedFd(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
}

}  // namespace

SocketBell::SocketBell(HostMemory& memory, IoThread& io, int sockets)
    : memory_(memory), io_(io), sockets_(sockets), rung_(eventfd_of(memory, sockets)) {}

// A second thread goes the other way.
void SocketBell::wait(std::uint32_t seen, TimePoint deadline) {
  if (!rung_ || is_at_sockets_.exchange(true)) {
    io_.arm();
    memory_.wait(seen, deadline);
    return;
  }
  if (memory_.value() == seen) sleep_at_sockets(deadline);
  is_at_sockets_ = false;
}

void SocketBell::sleep_at_sockets(TimePoint deadline) {
  const timespec limit = time_left(deadline);
  pollfd both[2] = {{sockets_, POLLIN, 0}, {rung_.get(), POLLIN, 0}};
  ::ppoll(both, 2, &limit, nullptr);
  std::uint64_t times;
  if (both[1].revents != 0)
    HV_CHECK(::read(rung_.get(), &times, sizeof times) == sizeof times, "one thread reads it");
}

// Who sleeps says so before it looks at the value; we change the value before we look who sleeps.
void SocketBell::ring() {
  memory_.ring();
  if (!is_at_sockets_) return;
  const std::uint64_t once = 1;
  HV_CHECK(::write(rung_.get(), &once, sizeof once) == sizeof once, "an eventfd counts");
}

}  // namespace hv::runtime
