// Unix sockets without a file, and the sign that ends whoever waits for one.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "src/base/unique_fd.h"

namespace hv::fake {

// Set once; it can be polled beside sockets.
class StopSign {
 public:
  StopSign();
  void set();
  bool is_set() const { return is_set_; }
  int fd() const { return event_.get(); }  // readable once it is set

 private:
  UniqueFd event_;
  std::atomic<bool> is_set_{false};
};

// type: SOCK_STREAM or SOCK_SEQPACKET. The name lies in no file system and goes with the socket.
UniqueFd listen_at(const std::string& name, int type);
UniqueFd connect_to(const std::string& name, int type);  // empty: nobody listens there

// Waits for something to read, or to accept, at one of them, and returns it; -1: the sign was set.
int await_readable(const std::vector<int>& fds, const StopSign& stop);

// All of it, as one message where the socket has such; false: the other end is gone.
bool send_all(int fd, const void* bytes, std::size_t count);
bool receive_all(int fd, void* bytes, std::size_t count);

// A part of it now, for what does not wait: what was moved, or -1 when the other end is gone.
std::ptrdiff_t send_some(int fd, const void* bytes, std::size_t count);
std::ptrdiff_t receive_some(int fd, void* bytes, std::size_t count);

}  // namespace hv::fake
