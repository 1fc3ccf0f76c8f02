// HvrunStream: the bytes to and from hvrun, over any transport. Never blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <string>

#include "src/base/unique_fd.h"
#include "src/wire/agent_greeting.h"

namespace hv::launcher {

class HvrunStream {
 public:
  virtual ~HvrunStream() = default;
  // Two descriptors: one to watch for arriving bytes, one for capacity to write.
  virtual int in() const = 0;
  virtual int out() const = 0;
  // Appends the bytes that have arrived, perhaps none. False: the stream has ended; *reason says
  // how.
  virtual bool read(std::string* bytes, std::string* reason) = 0;
  // Takes as many bytes of these buffers as it has capacity for, and sends bytes that it took
  // before; returns the bytes taken, -1 (errno) when the stream is broken. is_ready: poll has just
  // reported out() as writable.
  virtual ssize_t write(const iovec* buffers, int count, bool is_ready) = 0;
  // Bytes that were taken have not been sent yet.
  virtual bool has_unsent() const { return false; }
};

// Over two inherited descriptors, sockets or pipes. O_NONBLOCK is never set on them, because it
// belongs to the open file that others (the login shell, sshd) share. A socket takes MSG_DONTWAIT;
// a pipe is reopened for writing through /proc/self/fd; where that is refused, a pipe that poll
// reports as writable takes PIPE_BUF bytes without blocking.
std::unique_ptr<HvrunStream> plain_stream(int in, int out);

// Over a connection whose two ends have authenticated each other.
std::unique_ptr<HvrunStream> sealed_stream(UniqueFd socket, const ControlKeys& keys);

}  // namespace hv::launcher
