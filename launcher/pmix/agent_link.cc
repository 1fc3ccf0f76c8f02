// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/agent_link.h"

#include <unistd.h>

#include <cerrno>

#include "src/base/blocking_write.h"

namespace hv::launcher {

bool AgentLink::send_bytes(const std::string& bytes) {
  const std::lock_guard lock(writing_);
  return write_all(socket_.get(), bytes) == 0;
}

bool AgentLink::receive(Frame* frame) {
  char bytes[64 << 10];
  while (!parser_.next(frame)) {
    const ssize_t got = ::read(socket_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !parser_.feed({bytes, static_cast<std::size_t>(got)})) return false;
  }
  return true;
}

}  // namespace hv::launcher
