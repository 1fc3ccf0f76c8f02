// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/output_frame.h"

#include <cstring>

#include "src/wire/frame.h"
#include "src/wire/messages.h"

namespace hv::launcher {
namespace {

// The message without its bytes, encoded.
std::string head(std::uint32_t rank, RankStream stream, std::int64_t wall_clock_ns, bool is_end) {
  if (stream == RankStream::kResults) {
    wire::Result result;
    result.end = is_end;
    return encode_frame_of(result);
  }
  wire::Output output;
  output.rank = rank;
  output.stream = static_cast<std::uint8_t>(stream);
  output.end = is_end;
  output.wall_clock_ns = wall_clock_ns;
  return encode_frame_of(output);
}

void set_length(std::string* frame, std::size_t at, std::size_t value) {
  const auto length = static_cast<std::uint32_t>(value);
  std::memcpy(frame->data() + at, &length, sizeof length);
}

}  // namespace

// The bytes are the last field of either message: their length is right before them, and the length
// of the frame at its front.
std::string output_frame(std::uint32_t rank, RankStream stream, std::int64_t wall_clock_ns,
                         std::string_view bytes) {
  const std::string empty = head(rank, stream, wall_clock_ns, false);
  std::string frame;
  frame.reserve(empty.size() + bytes.size());
  frame += empty;
  frame += bytes;
  set_length(&frame, 0, frame.size() - sizeof(std::uint32_t));
  set_length(&frame, empty.size() - sizeof(std::uint32_t), bytes.size());
  return frame;
}

std::string output_end_frame(std::uint32_t rank, RankStream stream, std::int64_t wall_clock_ns) {
  return head(rank, stream, wall_clock_ns, true);
}

}  // namespace hv::launcher
