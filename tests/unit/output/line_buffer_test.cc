// Lines come out of a LineBuffer as they went in, whatever pieces they arrived in.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_buffer.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using hv::launcher::kLongestLine;
using hv::launcher::LineBuffer;
using hv::launcher::LinePiece;

namespace {

struct Taken {
  std::string text;
  LinePiece::Ending ending;
  bool operator==(const Taken&) const = default;
};

constexpr auto kNewline = LinePiece::Ending::kNewline;
constexpr auto kCut = LinePiece::Ending::kCut;
constexpr auto kEnd = LinePiece::Ending::kEndOfStream;

// Feeds text in pieces of the given size and ends the stream.
std::vector<Taken> lines_of(std::string_view text, std::size_t piece_bytes,
                            std::size_t longest = kLongestLine) {
  LineBuffer buffer(longest);
  std::vector<Taken> taken;
  const auto sink = [&taken](const LinePiece& piece) {
    taken.push_back({std::string(piece.held) + std::string(piece.text), piece.ending});
  };
  for (std::size_t at = 0; at < text.size(); at += piece_bytes)
    buffer.feed(text.substr(at, piece_bytes), sink);
  buffer.end(sink);
  return taken;
}

std::string joined(const std::vector<Taken>& taken) {
  std::string text;
  for (const Taken& one : taken) text += one.text;
  return text;
}

}  // namespace

TEST_CASE("a line is given once it is whole, with its newline") {
  CHECK(lines_of("one\ntwo\n", 100) ==
        std::vector<Taken>{{"one\n", kNewline}, {"two\n", kNewline}});
}

TEST_CASE("a last line without newline is given at the end of the stream, as it is") {
  CHECK(lines_of("one\ntwo", 100) == std::vector<Taken>{{"one\n", kNewline}, {"two", kEnd}});
}

TEST_CASE("an empty stream has no lines, and an empty line is one") {
  CHECK(lines_of("", 1).empty());
  CHECK(lines_of("\n\n", 1).size() == 2);
}

TEST_CASE("a carriage return or a NUL ends no line") {
  const std::string text("a\rb\0c\r\nd", 8);
  CHECK(lines_of(text, 3) == std::vector<Taken>{{text.substr(0, 7), kNewline}, {"d", kEnd}});
}

TEST_CASE("a text split at every position gives the same lines") {
  const std::string text = "first\n\nthird \xff\xfe\n\xe2\x80\xa6 last";
  const std::vector<Taken> whole = lines_of(text, text.size());
  for (std::size_t at = 0; at <= text.size(); ++at) {
    LineBuffer buffer;
    std::vector<Taken> taken;
    const auto sink = [&taken](const LinePiece& piece) {
      taken.push_back({std::string(piece.held) + std::string(piece.text), piece.ending});
    };
    buffer.feed(std::string_view(text).substr(0, at), sink);
    buffer.feed(std::string_view(text).substr(at), sink);
    buffer.end(sink);
    CHECK_MESSAGE(taken == whole, "split at " << at);
  }
}

TEST_CASE("long lines are given whole, with and without final newline") {
  for (const std::size_t bytes :
       {std::size_t{1} << 10, std::size_t{8} << 10, (std::size_t{8} << 10) + 3,
        std::size_t{10} << 10, kLongestLine - 1, kLongestLine}) {
    for (const bool has_newline : {true, false}) {
      const std::string line = std::string(bytes, 'x') + (has_newline ? "\n" : "");
      for (const std::size_t piece : {std::size_t{1000}, std::size_t{8192}, line.size()}) {
        CAPTURE(bytes);
        CAPTURE(piece);
        CHECK(lines_of(line, piece) == std::vector<Taken>{{line, has_newline ? kNewline : kEnd}});
      }
    }
  }
}

TEST_CASE("a line one byte over the limit is cut once, and nothing of it is lost") {
  const std::string line = std::string(kLongestLine + 1, 'x') + "\n";
  const std::vector<Taken> taken = lines_of(line, 65536);
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].text.size() == kLongestLine);
  CHECK(taken[0].ending == kCut);
  CHECK(taken[1] == Taken{"x\n", kNewline});
}

TEST_CASE("a line of many times the limit is cut into pieces of the limit") {
  CHECK(lines_of("abcdefgh\n", 5, 3) ==
        std::vector<Taken>{{"abc", kCut}, {"def", kCut}, {"gh\n", kNewline}});
  CHECK(lines_of("abcdef", 6, 3) == std::vector<Taken>{{"abc", kCut}, {"def", kEnd}});
}

TEST_CASE("what a stream holds back is never more than the limit") {
  LineBuffer buffer(1000);
  for (int i = 0; i < 100; ++i) {
    buffer.feed(std::string(77, 'x'), [](const LinePiece&) {});
    CHECK(buffer.held_bytes() <= 1000);
  }
}

TEST_CASE("random bytes in random pieces come out in order and complete") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const std::size_t size = random() % 3000;
    while (text.size() < size) text += random() % 20 == 0 ? '\n' : static_cast<char>(random());
    const std::size_t longest = 1 + random() % 60;
    LineBuffer buffer(longest);
    std::vector<Taken> taken;
    const auto sink = [&taken](const LinePiece& piece) {
      taken.push_back({std::string(piece.held) + std::string(piece.text), piece.ending});
    };
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t piece = 1 + random() % 100;
      buffer.feed(rest.substr(0, piece), sink);
      rest.remove_prefix(std::min(piece, rest.size()));
    }
    buffer.end(sink);
    CHECK(joined(taken) == text);
    CHECK(taken == lines_of(text, text.size() + 1, longest));
  }
}
