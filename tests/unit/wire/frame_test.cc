// Tests of cutting frames out of a stream. SPDX-License-Identifier: Apache-2.0
#include "src/wire/frame.h"

#include <doctest/doctest.h>

#include <random>

TEST_CASE("frames come out whole however the stream is cut") {
  std::string stream;
  std::vector<std::string> payloads{"", "a", std::string(1000, 'b'), std::string("\0\0", 2),
                                    std::string(70000, 'c')};
  for (std::size_t i = 0; i < payloads.size(); ++i)
    stream += hv::encode_frame(static_cast<std::uint8_t>(i + 1), payloads[i]);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    hv::FrameParser parser(1 << 20);
    std::vector<std::string> received;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size =
          std::min<std::size_t>(1 + random() % (round < 10 ? 3 : 30000), stream.size() - at);
      REQUIRE(parser.feed(std::string_view(stream).substr(at, size)));
      at += size;
      for (hv::Frame frame; parser.next(&frame);) {
        CHECK(frame.type == received.size() + 1);
        received.push_back(frame.payload);
      }
    }
    CHECK(received == payloads);
    CHECK(parser.partial_bytes() == 0);
  }
}

TEST_CASE("a frame over the limit breaks the stream before its bytes are stored") {
  hv::FrameParser parser(100);
  CHECK(parser.feed(hv::encode_frame(1, std::string(100, 'x'))));
  hv::Frame frame;
  CHECK(parser.next(&frame));
  const std::string header = hv::encode_frame(1, std::string(101, 'x')).substr(0, 5);
  CHECK_FALSE(parser.feed(header));
  CHECK(parser.broken());
  CHECK_FALSE(parser.feed("more"));
  CHECK_FALSE(parser.next(&frame));
}

TEST_CASE("a length of zero, which has no room for a type, breaks the stream") {
  hv::FrameParser parser(100);
  CHECK_FALSE(parser.feed(std::string(5, '\0')));
}

TEST_CASE("a bad header behind a good frame is found when the good one is taken") {
  hv::FrameParser parser(100);
  const bool fed =
      parser.feed(hv::encode_frame(1, "good") + std::string("\xff\xff\xff\xff\x01", 5));
  CHECK(fed);
  hv::Frame frame;
  CHECK(parser.next(&frame));
  CHECK(frame.payload == "good");
  CHECK(parser.broken());
}
