// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/piece_stream.h"

#include <algorithm>

#include "runtime/collective/lanes.h"

namespace hv::runtime {

// Ranges that lie one behind the other go out together.
std::size_t Sender::run_length(std::size_t most) const {
  std::size_t length = ranges_.front().left;
  for (std::size_t i = 1; i < ranges_.size() && length < most; ++i) {
    if (ranges_[i].from != ranges_.front().from + length) break;
    length += ranges_[i].left;
  }
  return std::min(length, most);
}

bool Sender::step() {
  bool moved = false;
  while (!ranges_.empty()) {
    std::size_t part = run_length(channel_->writable() / kWordBytes * kWordBytes);
    if (part == 0 && ranges_.front().left > 0) return moved;
    if (part > 0) channel_->write(ranges_.front().from, part);
    moved = true;
    while (!ranges_.empty() && ranges_.front().left <= part) {
      part -= ranges_.front().left;
      ranges_.pop_front();
      ++sent_;
    }
    if (part == 0) continue;
    ranges_.front().from += part;
    ranges_.front().left -= part;
  }
  return moved;
}

Receiver::Outcome Receiver::step(std::byte* into, std::size_t bytes) {
  if (!is_under_way_) position_ = 0;
  is_under_way_ = true;
  const std::size_t before = position_, due = padded(bytes);
  if (position_ < bytes) position_ += channel_->receive(into + position_, bytes - position_);
  while (position_ >= bytes && position_ < due) {
    const std::size_t padding = std::min(due - position_, channel_->readable().size());
    if (padding == 0) break;
    channel_->consume(padding);
    position_ += padding;
  }
  if (position_ < due) return position_ > before ? Outcome::kSome : Outcome::kNothing;
  is_under_way_ = false;
  return Outcome::kWhole;
}

}  // namespace hv::runtime
