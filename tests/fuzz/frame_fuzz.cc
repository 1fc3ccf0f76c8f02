// Frames out of a byte stream, whatever pieces it arrives in: the second byte says how it is cut.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/frame.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

struct Parsed {
  std::vector<std::pair<std::uint8_t, std::string>> frames;
  bool is_broken = false;
  bool operator==(const Parsed&) const = default;
};

Parsed parse(std::string_view stream, std::size_t limit, std::size_t step) {
  Parsed parsed;
  FrameParser parser(limit);
  for (std::size_t at = 0; at < stream.size(); at += step) {
    const bool is_whole = parser.feed(stream.substr(at, step));
    Frame frame;
    while (parser.next(&frame)) {
      HV_CHECK(frame.payload.size() <= limit, "no frame is beyond the limit");
      parsed.frames.emplace_back(frame.type, frame.payload);
    }
    HV_CHECK(is_whole || parser.broken(), "refused bytes break the stream");
    HV_CHECK(parser.partial_bytes() <= limit + kFrameHeaderBytes + step, "little is kept");
  }
  parsed.is_broken = parser.broken();
  return parsed;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const std::string some = encode_frame(3, "abc") + encode_frame(255, "");
  return {"\x40\x01" + some, "\x40\x07" + encode_frame(1, std::string(64, 'x')) + some,
          std::string("\x40\x03\x00\x00\x00\x00\x01", 7),
          "\x10\x05" + some + std::string("\xff\xff\xff\xff\x01", 5)};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t limit = input.byte();
  const std::size_t step = 1 + input.byte() % 32;
  const std::string_view stream = input.rest();
  const Parsed whole = parse(stream, limit, std::max<std::size_t>(1, stream.size()));
  HV_CHECK(parse(stream, limit, step) == whole, "the pieces make no difference");
  std::string again;
  for (const auto& [type, payload] : whole.frames) again += encode_frame(type, payload);
  HV_CHECK(stream.substr(0, again.size()) == again, "frames are what they encode to");
  return 0;
}
