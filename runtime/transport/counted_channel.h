// CountedChannel: a channel that counts what is written to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/transport/transport.h"

namespace hv::runtime {

class CountedChannel : public Channel {
 public:
  explicit CountedChannel(std::atomic<std::uint64_t>& bytes) : bytes_(bytes) {}
  // Before any use, and whenever the lane is asked for anew: the channel may be another.
  void stand_for(Channel& channel) { channel_ = &channel; }

  std::size_t writable() const override { return channel_->writable(); }
  void write(const void* bytes, std::size_t size) override {
    channel_->write(bytes, size);
    bytes_.fetch_add(size, std::memory_order_relaxed);
  }
  std::span<const std::byte> readable() const override { return channel_->readable(); }
  void consume(std::size_t size) override { channel_->consume(size); }
  std::size_t receive(std::byte* into, std::size_t size) override {
    return channel_->receive(into, size);
  }
  void withdraw() noexcept override { channel_->withdraw(); }
  void shrink() override { channel_->shrink(); }

 private:
  std::atomic<std::uint64_t>& bytes_;
  Channel* channel_ = nullptr;
};

}  // namespace hv::runtime
