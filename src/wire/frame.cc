// Cutting frames out of a stream.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/frame.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "src/base/check.h"

namespace hv {

static_assert(std::endian::native == std::endian::little,
              "the wire format is little-endian, and so are our hosts");

std::string encode_frame(std::uint8_t type, std::string_view payload) {
  HV_CHECK(payload.size() < UINT32_MAX, "a frame's length fits into 32 bits");
  const auto length = static_cast<std::uint32_t>(payload.size() + 1);
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame += static_cast<char>(type);
  frame += payload;
  return frame;
}

bool FrameParser::header_fits() {
  if (buffer_.size() - start_ < kFrameHeaderBytes) return true;
  std::uint32_t length = 0;
  std::memcpy(&length, buffer_.data() + start_, sizeof length);
  broken_ = length == 0 || length - 1 > max_payload_;
  return !broken_;
}

bool FrameParser::feed(std::string_view bytes) {
  if (broken_) return false;
  if (start_ > 0 && start_ >= buffer_.size() / 2) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  append_secret(&buffer_, bytes);
  return header_fits();
}

bool FrameParser::next(Frame* frame) {
  if (broken_ || buffer_.size() - start_ < kFrameHeaderBytes || !header_fits()) return false;
  std::uint32_t length = 0;
  std::memcpy(&length, buffer_.data() + start_, sizeof length);
  if (buffer_.size() - start_ < sizeof length + length) return false;
  frame->type = static_cast<std::uint8_t>(buffer_[start_ + sizeof length]);
  frame->payload.assign(buffer_, start_ + kFrameHeaderBytes, length - 1);
  start_ += sizeof length + length;
  (void)header_fits();  // a bad next header is told by broken() before its bytes are awaited
  return true;
}

void FrameParser::wipe_taken() {
  wipe(buffer_.data(), start_);
  // Moving the rest to the front has left its end behind it.
  const std::size_t size = buffer_.size();
  buffer_.resize(buffer_.capacity());
  wipe(buffer_.data() + size, buffer_.size() - size);
  buffer_.resize(size);
}

}  // namespace hv
