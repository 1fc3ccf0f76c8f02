// Frames: how messages are cut out of a byte stream: u32 length of the rest, u8 type, payload.
// SPDX-License-Identifier: Apache-2.0
//
// Sans I/O. A length beyond the limit is an error at once, before a byte of it is stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "src/wire/codec.h"
#include "src/wire/wipe.h"

namespace hv {

struct Frame {
  std::uint8_t type = 0;
  std::string payload;
};

constexpr std::size_t kFrameHeaderBytes = 5;

std::string encode_frame(std::uint8_t type, std::string_view payload);

template <class Message>
std::string encode_frame_of(const Message& message) {
  std::string payload = encode(message);
  std::string frame = encode_frame(static_cast<std::uint8_t>(Message::kType), payload);
  if constexpr (SecretMessage<Message>) wipe(&payload);
  return frame;
}

// Decodes the payload and calls handler with the message. False: the payload is no such message, or
// the handler returns bool and has refused it.
template <class Message, class Handler>
[[nodiscard]] bool handle_message(const Frame& frame, Handler&& handler) {
  Message message;
  if (!decode(frame.payload, &message)) return false;
  if constexpr (std::is_void_v<std::invoke_result_t<Handler, Message>>) {
    handler(std::move(message));
    return true;
  } else {
    return handler(std::move(message));
  }
}

class FrameParser {
 public:
  // max_payload: bytes after the header that a frame may have.
  explicit FrameParser(std::size_t max_payload) : max_payload_(max_payload) {}

  // Adds received bytes. False once the stream is broken (a frame over the limit); then it stays
  // so.
  [[nodiscard]] bool feed(std::string_view bytes);
  // Takes the next whole frame.
  bool next(Frame* frame);
  bool broken() const { return broken_; }
  // Overwrites what has been handed out: after a frame that held the job's key.
  void wipe_taken();
  // Bytes of a frame that is not whole yet.
  std::size_t partial_bytes() const { return buffer_.size() - start_; }

 private:
  bool header_fits();

  std::size_t max_payload_;
  std::string buffer_;
  std::size_t start_ = 0;  // first byte of buffer_ not handed out
  bool broken_ = false;
};

}  // namespace hv
