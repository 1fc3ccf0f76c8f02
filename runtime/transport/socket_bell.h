// The doorbell of a rank that also waits for sockets: rung by other threads, by ranks of its host
// and by what comes from other hosts.
// SPDX-License-Identifier: Apache-2.0
//
// Sockets are watched while somebody sleeps here. A rank that is alone on its host sleeps at them
// itself: nobody else rings its futex word, so nothing but this has to be woken. Ranks that share a
// host sleep at their futex words, and the I/O thread sleeps at the sockets for them.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/transport/fabric.h"
#include "runtime/transport/io_thread.h"
#include "runtime/transport/shm/host_memory.h"
#include "src/base/fork_guarded_fd.h"

namespace hv::runtime {

class SocketBell : public Doorbell {
 public:
  // sockets: readable when one of them has something; watched by the I/O thread when it is armed.
  // -1: there are none. All three outlive this.
  SocketBell(HostMemory& memory, IoThread& io, int sockets);

  std::uint32_t value() const override { return memory_.value(); }
  void wait(std::uint32_t seen, TimePoint deadline) override;
  void ring() override;

 private:
  void sleep_at_sockets(TimePoint deadline);

  HostMemory& memory_;
  IoThread& io_;
  const int sockets_;
  const ForkGuardedFd rung_;  // an eventfd; none: the I/O thread sleeps at the sockets
  std::atomic<bool> is_at_sockets_{false};  // one thread sleeps there
};

}  // namespace hv::runtime
