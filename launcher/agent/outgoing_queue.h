// OutgoingQueue: frames that the agent has yet to send: control frames before output frames, each
// whole. Sans I/O.
// SPDX-License-Identifier: Apache-2.0
//
// Output may fill up behind a slow link; an Exited, a Pong or a Problem must not wait for it. So
// there are two queues, and the control queue is sent first as soon as the frame that is under way
// has left.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <string>

namespace hv::launcher {

class OutgoingQueue {
 public:
  void add_control(std::string frame);
  void add_output(std::string frame);

  bool is_empty() const { return under_way_.empty() && control_.empty() && output_.empty(); }
  // Bytes of output that wait; pumps stop reading when this is too much.
  std::size_t output_bytes() const { return output_bytes_; }

  // The next bytes, in at most `most` buffers; returns their number. Valid until the next change.
  int next_buffers(iovec* buffers, int most) const;
  // Call when that many of those bytes have been sent.
  void consume(std::size_t bytes);
  void clear();

 private:
  struct QueuedFrame {
    std::string frame;
    bool is_output = false;
  };
  // under_way_: at most one frame, of which start_ bytes have gone.
  std::deque<QueuedFrame> under_way_;
  std::size_t start_ = 0;
  std::deque<QueuedFrame> control_;
  std::deque<QueuedFrame> output_;
  std::size_t output_bytes_ = 0;
};

}  // namespace hv::launcher
