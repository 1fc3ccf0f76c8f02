// HvrunStream: the bytes to and from hvrun, whatever carries them. Never waits.
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
  // To be watched for bytes that come, and for room; two descriptors.
  virtual int in() const = 0;
  virtual int out() const = 0;
  // Appends what has come to *bytes, perhaps nothing. False: the stream has ended, *reason says
  // how.
  virtual bool read(std::string* bytes, std::string* reason) = 0;
  // Takes of these pieces what there is room for, and sends on what it took before; returns the
  // bytes taken, -1 (errno) when the stream is broken. is_ready: out() has just been called
  // writable.
  virtual ssize_t write(const iovec* buffers, int count, bool is_ready) = 0;
  // Something that was taken has not gone out.
  virtual bool has_unsent() const { return false; }
};

// Over two inherited descriptors, as they are: sockets or pipes. O_NONBLOCK is never set on them,
// because it belongs to the open file that others (the login shell, sshd) share. A socket takes
// MSG_DONTWAIT; a pipe is opened anew for writing through /proc/self/fd; where that is refused,
// what poll calls writable takes PIPE_BUF bytes without waiting.
std::unique_ptr<HvrunStream> plain_stream(int in, int out);

// Over a connection that both ends have proven.
std::unique_ptr<HvrunStream> sealed_stream(UniqueFd socket, const ControlKeys& keys);

}  // namespace hv::launcher
