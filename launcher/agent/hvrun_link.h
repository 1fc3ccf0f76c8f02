// The agent's conversation with hvrun as a stream: frames in from fd 0, frames out to fd 1, on the
// event loop.
// SPDX-License-Identifier: Apache-2.0
//
// Both descriptors are inherited: O_NONBLOCK is never set on them, because it belongs to the open
// file that others (the login shell, sshd) share. A socket takes MSG_DONTWAIT; a pipe is opened
// anew for writing through /proc/self/fd; where that is refused, what poll calls writable takes
// PIPE_BUF bytes without waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/outgoing_queue.h"
#include "src/base/unique_fd.h"
#include "src/wire/frame.h"

namespace hv::launcher {

struct LinkCallbacks {
  std::function<void(const Frame& frame)> on_frame;
  std::function<void()> on_life;  // any bytes have come
  std::function<void(const std::string& reason)>
      on_lost;                       // once; no frame comes or goes afterwards
  std::function<void()> on_drained;  // output has left: there is room for more
};

class HvrunLink {
 public:
  static constexpr std::size_t kMostOutput = 1 << 20;

  HvrunLink(EventLoop& loop, int in, int out, LinkCallbacks callbacks);
  ~HvrunLink();

  template <class Message>
  void send(const Message& message) {
    if (lost_) return;
    queue_.add_control(encode_frame_of(message));
    flush_soon();
  }
  // A whole frame of output (encoded by its pump, which reads into it).
  void send_output(std::string frame);
  bool has_room() const { return queue_.output_bytes() < kMostOutput; }
  bool is_lost() const { return lost_; }
  bool is_flushed() const { return queue_.is_empty(); }
  // Gives hvrun up from this side: on_lost follows.
  void give_up(const std::string& reason);

 private:
  void receive();
  void flush_soon();
  void flush();
  void await_room(bool is_full);
  // Bytes that went, 0 when the stream takes none now, -1 (errno) when it is broken.
  ssize_t write_some();

  EventLoop& loop_;
  LinkCallbacks callbacks_;
  int in_;
  int out_;
  bool in_is_socket_;
  bool out_is_socket_;
  UniqueFd reopened_;         // our own open file of the pipe `out`
  std::size_t most_at_once_;  // bytes that a write may have without waiting
  OutgoingQueue queue_;
  FrameParser parser_;
  std::string buffer_;
  bool flush_is_due_ = false;
  bool waits_for_room_ = false;
  bool lost_ = false;
};

}  // namespace hv::launcher
