// Sender, Receiver: pieces of memory through a channel, in order, each padded to whole words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "runtime/transport/transport.h"

namespace hv::runtime {

// Sends ranges of memory through a channel, as far as it has room.
class Sender {
 public:
  explicit Sender(Channel& channel) : channel_(&channel) {}
  void add(const std::byte* from, std::size_t bytes) { ranges_.push_back({from, bytes}); }
  bool step();
  std::uint64_t sent() const { return sent_; }  // whole ranges

 private:
  struct Piece {
    const std::byte* from;
    std::size_t left;
  };
  std::size_t run_length(std::size_t most) const;

  Channel* channel_;
  std::deque<Piece> ranges_;
  std::uint64_t sent_ = 0;
};

// Takes pieces to where they belong, one after the other; its end in the middle of a piece takes
// back the memory that the channel may write to.
class Receiver {
 public:
  enum class Outcome { kNothing, kSome, kWhole };

  explicit Receiver(Channel& channel) : channel_(&channel) {}
  Receiver(Receiver&& other) noexcept
      : channel_(other.channel_),
        position_(other.position_),
        is_under_way_(std::exchange(other.is_under_way_, false)) {}
  Receiver& operator=(Receiver&&) = delete;
  ~Receiver() {
    if (is_under_way_) channel_->withdraw();
  }

  // Goes on with a piece of `bytes` bytes, without its padding, that belongs at `into`. From the
  // first call until kWhole the memory is the channel's to write to. A piece of none is whole at
  // once.
  Outcome step(std::byte* into, std::size_t bytes);
  // Bytes of the piece that have come, padding included; of the last one until the next begins.
  std::size_t position() const { return position_; }

 private:
  Channel* channel_;
  std::size_t position_ = 0;
  bool is_under_way_ = false;  // between the first step of a piece and the last
};

}  // namespace hv::runtime
