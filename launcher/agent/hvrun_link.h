// HvrunLink: frames between the agent and hvrun over a stream, on the event loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_stream.h"
#include "launcher/agent/outgoing_queue.h"
#include "src/wire/frame.h"

namespace hv::launcher {

struct LinkCallbacks {
  std::function<void(const Frame& frame)> on_frame;
  std::function<void()> on_bytes;  // some have arrived
  std::function<void(const std::string& reason)>
      on_lost;                       // once; no frame is received or sent afterwards
  std::function<void()> on_drained;  // output has been sent: there is capacity for more
};

class HvrunLink {
 public:
  static constexpr std::size_t kMostOutput = 1 << 20;

  HvrunLink(EventLoop& loop, std::unique_ptr<HvrunStream> stream, LinkCallbacks callbacks);
  ~HvrunLink();

  template <class Message>
  void send(const Message& message) {
    if (lost_) return;
    queue_.add_control(encode_frame_of(message));
    flush_soon();
  }
  // frame: a whole frame of output, encoded by its pump.
  void send_output(std::string frame);
  bool has_capacity() const { return queue_.output_bytes() < kMostOutput; }
  bool is_lost() const { return lost_; }
  bool is_flushed() const { return queue_.is_empty() && !stream_->has_unsent(); }
  // Closes the link from this end: on_lost follows.
  void give_up(const std::string& reason);

 private:
  void receive();
  void flush_soon();
  void flush();
  void await_capacity(bool is_full);
  // See HvrunStream::write().
  ssize_t write_some(bool is_ready);

  EventLoop& loop_;
  LinkCallbacks callbacks_;
  std::unique_ptr<HvrunStream> stream_;
  OutgoingQueue queue_;
  FrameParser parser_;
  std::string arrived_;
  bool flush_is_due_ = false;
  bool awaits_capacity_ = false;
  bool lost_ = false;
};

}  // namespace hv::launcher
