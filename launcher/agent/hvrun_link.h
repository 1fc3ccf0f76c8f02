// The agent's conversation with hvrun: frames in and out over a stream, on the event loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/hvrun_stream.h"
#include "src/wire/frame.h"

namespace hv::launcher {

// What the agent still has to send: control frames before output frames, each frame whole. Sans
// I/O.
// Output may fill up behind a slow link; an Exited, a Pong or a Problem must not wait for it. So
// there are two lanes, and the control lane goes first as soon as the frame that is under way has
// left.
class OutgoingQueue {
 public:
  void add_control(std::string frame);
  void add_output(std::string frame);

  bool is_empty() const { return under_way_.empty() && control_.empty() && output_.empty(); }
  // Bytes of output that wait; pumps stop reading when this is too much.
  std::size_t output_bytes() const { return output_bytes_; }

  // The next bytes, in at most `most` pieces; returns their number. Valid until the next change.
  int pieces(iovec* pieces, int most) const;
  // So many of those bytes have been taken.
  void consume(std::size_t bytes);
  void clear();

 private:
  struct Piece {
    std::string frame;
    bool is_output = false;
  };
  // under_way_: at most one frame, of which start_ bytes have gone.
  std::deque<Piece> under_way_;
  std::size_t start_ = 0;
  std::deque<Piece> control_;
  std::deque<Piece> output_;
  std::size_t output_bytes_ = 0;
};

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

  HvrunLink(EventLoop& loop, std::unique_ptr<HvrunStream> stream, LinkCallbacks callbacks);
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
  bool is_flushed() const { return queue_.is_empty() && !stream_->has_unsent(); }
  // Gives hvrun up from this side: on_lost follows.
  void give_up(const std::string& reason);

 private:
  void receive();
  void flush_soon();
  void flush();
  void await_room(bool is_full);
  // As HvrunStream::write().
  ssize_t write_some(bool is_ready);

  EventLoop& loop_;
  LinkCallbacks callbacks_;
  std::unique_ptr<HvrunStream> stream_;
  OutgoingQueue queue_;
  FrameParser parser_;
  std::string arrived_;
  bool flush_is_due_ = false;
  bool waits_for_room_ = false;
  bool lost_ = false;
};

}  // namespace hv::launcher
