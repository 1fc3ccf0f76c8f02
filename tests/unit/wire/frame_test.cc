// Tests of src/wire/frame.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/frame.h"

#include <doctest/doctest.h>

#include <random>

#include "src/wire/messages.h"

using namespace std::string_literals;

namespace {

std::vector<hv::Frame> frames_of(hv::FrameParser& parser) {
  std::vector<hv::Frame> result;
  for (hv::Frame frame; parser.next(&frame);) result.push_back(frame);
  return result;
}

}  // namespace

TEST_CASE("a frame is the length of its rest, its type and its payload") {
  CHECK(hv::encode_frame(7, "abc") == "\4\0\0\0\7abc"s);
  CHECK(hv::encode_frame(0, "") == "\1\0\0\0\0"s);
  CHECK(hv::encode_frame(255, std::string(258, 'x')) == "\3\1\0\0\xff"s + std::string(258, 'x'));
}

TEST_CASE("a message's frame has the message's type and bytes") {
  const hv::wire::Signal message{15};
  CHECK(hv::encode_frame_of(message) ==
        hv::encode_frame(static_cast<std::uint8_t>(hv::wire::Type::kSignal), hv::encode(message)));
}

TEST_CASE("every type passes, whether or not anybody knows it") {
  hv::FrameParser parser(0);
  std::string stream;
  for (int type = 0; type < 256; ++type)
    stream += hv::encode_frame(static_cast<std::uint8_t>(type), "");
  REQUIRE(parser.feed(stream));
  const auto frames = frames_of(parser);
  REQUIRE(frames.size() == 256);
  for (std::size_t i = 0; i < frames.size(); ++i) CHECK(frames[i].type == i);
}

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
      for (const hv::Frame& frame : frames_of(parser)) {
        CHECK(frame.type == received.size() + 1);
        received.push_back(frame.payload);
      }
    }
    CHECK(received == payloads);
    CHECK(parser.partial_bytes() == 0);
  }
}

TEST_CASE("a frame that is cut anywhere does not come out before its last byte") {
  const std::string bytes = hv::encode_frame(3, "payload");
  hv::Frame frame{9, "untouched"};
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    hv::FrameParser parser(100);
    REQUIRE(parser.feed(bytes.substr(0, size)));
    CHECK_FALSE(parser.next(&frame));
    CHECK(frame.payload == "untouched");
    CHECK(parser.partial_bytes() == size);
    REQUIRE(parser.feed(bytes.substr(size)));
    const auto frames = frames_of(parser);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].payload == "payload");
  }
}

TEST_CASE("partial_bytes counts what is not handed out, behind whole frames, too") {
  hv::FrameParser parser(100);
  REQUIRE(parser.feed(hv::encode_frame(1, "whole") + hv::encode_frame(2, "part").substr(0, 6)));
  CHECK(parser.partial_bytes() == 10 + 6);
  CHECK(frames_of(parser).size() == 1);
  CHECK(parser.partial_bytes() == 6);
  CHECK(parser.feed(""));
  CHECK(parser.partial_bytes() == 6);
}

TEST_CASE("frames may pile up before they are taken") {
  hv::FrameParser parser(100);
  std::vector<std::string> sent, received;
  for (int i = 0; i < 1000; ++i) {
    sent.push_back(std::to_string(i));
    REQUIRE(parser.feed(hv::encode_frame(1, sent.back())));
    hv::Frame frame;
    // Every third is left to the end, so that the buffer is shifted under waiting frames.
    if (i % 3 != 0 && parser.next(&frame)) received.push_back(frame.payload);
  }
  for (const hv::Frame& frame : frames_of(parser)) received.push_back(frame.payload);
  CHECK(received == sent);
}

TEST_CASE("a payload may be as large as the limit and not one byte larger") {
  for (const std::size_t limit :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{65536}}) {
    CAPTURE(limit);
    hv::FrameParser exact(limit), over(limit);
    REQUIRE(exact.feed(hv::encode_frame(1, std::string(limit, 'x'))));
    CHECK(frames_of(exact).size() == 1);
    CHECK_FALSE(over.feed(hv::encode_frame(1, std::string(limit + 1, 'x'))));
    CHECK(frames_of(over).empty());
  }
}

TEST_CASE("a frame over the limit breaks the stream at its header, and for good") {
  hv::FrameParser parser(100);
  const std::string header = hv::encode_frame(1, std::string(101, 'x')).substr(0, 5);
  CHECK(parser.feed(header.substr(0, 4)));
  CHECK_FALSE(parser.broken());
  CHECK_FALSE(parser.feed(header.substr(4)));
  CHECK(parser.broken());
  const std::size_t stored = parser.partial_bytes();
  CHECK_FALSE(parser.feed(hv::encode_frame(1, "good again")));
  CHECK(parser.partial_bytes() == stored);
  hv::Frame frame;
  CHECK_FALSE(parser.next(&frame));
}

TEST_CASE("lengths at the ends of their range break the stream") {
  for (const std::string& length : {"\0\0\0\0"s, "\xff\xff\xff\xff"s, "\0\0\0\x80"s}) {
    hv::FrameParser parser(hv::wire::kMaxAgentPayload);
    CHECK_FALSE(parser.feed(length + "\1"));
    CHECK(parser.broken());
  }
}

TEST_CASE("a bad header behind a good frame is found when the good one is taken") {
  hv::FrameParser parser(100);
  REQUIRE(parser.feed(hv::encode_frame(1, "good") + "\xff\xff\xff\xff\x01"s));
  hv::Frame frame;
  CHECK(parser.next(&frame));
  CHECK(frame.payload == "good");
  CHECK(parser.broken());
  CHECK_FALSE(parser.next(&frame));
}

TEST_CASE("a flipped bit in a header never passes for the frame that was sent") {
  const std::string payload(100, 'x');
  const std::string sent = hv::encode_frame(5, payload);
  for (std::size_t bit = 0; bit < 8 * hv::kFrameHeaderBytes; ++bit) {
    CAPTURE(bit);
    std::string damaged = sent;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    hv::FrameParser parser(1000);
    const bool fed = parser.feed(damaged);
    CHECK(fed == !parser.broken());
    for (const hv::Frame& frame : frames_of(parser))
      CHECK_FALSE((frame.type == 5 && frame.payload == payload));
  }
}

TEST_CASE("frames swapped on the way come out swapped: order is the stream's") {
  hv::FrameParser parser(100);
  REQUIRE(parser.feed(hv::encode_frame(2, "second") + hv::encode_frame(1, "first") +
                      hv::encode_frame(1, "first")));
  std::string seen;
  for (const hv::Frame& frame : frames_of(parser)) seen += frame.payload + " ";
  CHECK(seen == "second first first ");
}

TEST_CASE("a message is handled when the payload decodes and the handler accepts it") {
  using hv::wire::Signal;
  const hv::Frame good{0, hv::encode(Signal{15})};
  std::uint32_t number = 0;
  const auto take = [&](const Signal& signal) { number = signal.number; };
  CHECK(hv::handle_message<Signal>(good, take));
  CHECK(number == 15);
  CHECK(hv::handle_message<Signal>(good, [](const Signal&) { return true; }));
  CHECK_FALSE(hv::handle_message<Signal>(good, [](const Signal&) { return false; }));
  number = 0;
  for (const std::string& payload : {good.payload + "x", std::string()})
    CHECK_FALSE(hv::handle_message<Signal>({0, payload}, take));
  CHECK(number == 0);
}
