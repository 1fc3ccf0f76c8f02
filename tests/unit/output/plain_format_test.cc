// The form for pipes and files: whole lines, labelled once, every byte kept.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "launcher/output/console_format.h"
#include "launcher/output/line_buffer.h"

using namespace std::string_literals;
using hv::TimePoint;
using hv::launcher::ConsoleFormat;
using hv::launcher::kLongestLine;
using hv::launcher::LabelStyle;
using hv::launcher::make_plain_format;
using hv::launcher::stream_id;

namespace {

constexpr LabelStyle kLabelled{true, false, false};
constexpr LabelStyle kBare{false, false, false};

// A plain console, and what it has put out.
struct Plain {
  explicit Plain(LabelStyle style) : format(make_plain_format(style)) {}
  void take(std::uint32_t rank, std::string_view bytes, int stream = 1, std::int64_t time = 0) {
    format->take(stream_id(rank, stream), time, bytes, TimePoint{}, out);
  }
  void end(std::uint32_t rank, int stream = 1) { format->end_stream(stream_id(rank, stream), out); }

  std::unique_ptr<ConsoleFormat> format;
  std::string out;
};

}  // namespace

TEST_CASE("plain format labels each line") {
  Plain console(kLabelled);
  console.take(0, "a\nb\n");
  console.take(1, "c\n");
  CHECK(console.out == "[0] a\n[0] b\n[1] c\n");
}

TEST_CASE("plain format labels a line split over two reads once, at every split position") {
  const std::string text = "first line\n\nthird\n";
  for (std::size_t at = 0; at <= text.size(); ++at) {
    Plain console(kLabelled);
    console.take(3, text.substr(0, at));
    console.take(3, text.substr(at));
    console.end(3);
    CHECK_MESSAGE(console.out == "[3] first line\n[3] \n[3] third\n", "split at " << at);
  }
}

TEST_CASE("plain format keeps lines whole when ranks and streams take turns within them") {
  Plain console(kLabelled);
  console.take(0, "one ");
  console.take(1, "two ");
  console.take(0, "err ", 2);
  console.take(1, "2\n");
  console.take(0, "1\n");
  console.take(0, "E\n", 2);
  CHECK(console.out == "[1] two 2\n[0] one 1\n[0] err E\n");
}

TEST_CASE("plain format ends a labelled last line that has no newline") {
  Plain console(kLabelled);
  console.take(0, "last");
  CHECK(console.out.empty());
  console.end(0);
  CHECK(console.out == "[0] last\n");
}

TEST_CASE("plain format labels long lines once, with and without final newline") {
  for (const std::size_t bytes :
       {std::size_t{1} << 10, std::size_t{8} << 10, (std::size_t{8} << 10) + 3,
        std::size_t{10} << 10, kLongestLine - 1, kLongestLine}) {
    for (const char* newline : {"\n", ""}) {
      Plain console(kLabelled);
      const std::string line(bytes, 'y');
      const std::string text = line + newline;
      for (std::size_t at = 0; at < text.size(); at += 8192) console.take(5, text.substr(at, 8192));
      console.end(5);
      CHECK_MESSAGE(console.out == "[5] " + line + "\n", bytes);
    }
  }
}

TEST_CASE("plain format marks every piece but the last of a line over 1 MiB") {
  Plain console(kLabelled);
  const std::string line(2 * kLongestLine + 1, 'z');
  console.take(0, line + "\nnext\n");
  const std::string piece(kLongestLine, 'z');
  CHECK(console.out == "[0] " + piece + " [cont]\n[0] " + piece + " [cont]\n[0] z\n[0] next\n");
}

TEST_CASE("plain format keeps carriage returns, NULs and bytes that are no UTF-8") {
  Plain console(kLabelled);
  console.take(0, "10%\r20%\r\0\xff\xfe\x80\r\n"s);
  CHECK(console.out == "[0] 10%\r20%\r\0\xff\xfe\x80\r\n"s);
}

TEST_CASE("without label one rank's bytes go through unchanged, however odd") {
  for (const std::string& text : {"a\nb"s, ""s, "\n"s, std::string(3 * kLongestLine + 5, 'x'),
                                  std::string(kLongestLine + 1, 'x') + "\nrest"}) {
    Plain console(kBare);
    for (std::size_t at = 0; at < text.size(); at += 50'000)
      console.take(0, text.substr(at, 50'000));
    console.end(0);
    console.format->end_all(console.out);
    CHECK(console.out == text);
  }
}

TEST_CASE("without label an unfinished last line is closed only when something follows") {
  Plain console(kBare);
  console.take(0, "last");
  console.end(0);
  CHECK(console.out == "last");
  console.take(1, "next\n");
  CHECK(console.out == "last\nnext\n");
}

TEST_CASE(
    "without label a line over 1 MiB is marked only where another rank's line comes between") {
  Plain console(kBare);
  const std::string piece(kLongestLine, 'x');
  console.take(0, piece + "y");
  CHECK(console.out == piece);
  console.take(1, "between\n");
  console.take(0, "end\n");
  CHECK(console.out == piece + " [cont]\nbetween\nyend\n");
}

TEST_CASE("a note stands on a line of its own") {
  Plain console(kBare);
  console.take(0, "open");
  console.end(0);
  console.format->note("hvrun: hello", console.out);
  console.format->note("hvrun: two\nlines\n", console.out);
  CHECK(console.out == "open\nhvrun: hello\nhvrun: two\nlines\n");
}

TEST_CASE("a note leaves a line that is still being assembled alone") {
  Plain console(kLabelled);
  console.take(0, "half");
  console.format->note("hvrun: hello", console.out);
  console.take(0, " whole\n");
  CHECK(console.out == "hvrun: hello\n[0] half whole\n");
}

TEST_CASE("a line bears the time at which its first byte was read") {
  Plain console({true, true, false});
  console.take(0, "beg", 1, 1'000'000'000);
  console.take(0, "in\nnext\n", 1, 2'000'000'000);
  CHECK(console.out ==
        "[0] 1970-01-01T00:00:01.000000Z begin\n[0] 1970-01-01T00:00:02.000000Z next\n");
}

TEST_CASE("every stream's unfinished line comes out when all end") {
  Plain console(kLabelled);
  console.take(1, "b");
  console.take(0, "a", 2);
  console.format->end_all(console.out);
  CHECK(console.out == "[0] a\n[1] b\n");
}

TEST_CASE("ending a stream that never wrote adds nothing") {
  Plain console(kLabelled);
  console.end(17);
  CHECK(console.out.empty());
}

TEST_CASE("random lines of many ranks in random pieces arrive whole and in order") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::map<std::uint32_t, std::string> written;
  Plain console(kLabelled);
  for (int step = 0; step < 5000; ++step) {
    const std::uint32_t rank = random() % 5;
    std::string bytes;
    for (std::size_t size = random() % 40; size > 0; --size) {
      bytes += random() % 10 == 0 ? '\n' : static_cast<char>(random());
    }
    written[rank] += bytes;
    console.take(rank, bytes);
  }
  console.format->end_all(console.out);
  std::map<std::uint32_t, std::string> arrived;
  for (std::size_t at = 0; at < console.out.size();) {
    const std::size_t newline = console.out.find('\n', at);
    REQUIRE(newline != std::string::npos);
    REQUIRE(console.out[at] == '[');
    REQUIRE(console.out.substr(at + 2, 2) == "] ");
    arrived[static_cast<std::uint32_t>(console.out[at + 1] - '0')] +=
        console.out.substr(at + 4, newline - at - 3);
    at = newline + 1;
  }
  for (auto& [rank, text] : written) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    CHECK(arrived[rank] == text);
  }
}
