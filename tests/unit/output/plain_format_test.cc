// The form for pipes and files: whole lines, labelled once, every byte kept.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "launcher/output/console_format.h"
#include "src/base/text.h"

using namespace std::chrono_literals;
using namespace std::string_literals;
using hv::TimePoint;
using hv::launcher::ConsoleFormat;
using hv::launcher::kMostHeld;
using hv::launcher::LabelStyle;
using hv::launcher::make_plain_format;
using hv::launcher::stream_id;

namespace {

const LabelStyle kLabelled{true, false, false};
const LabelStyle kBare{false, false, false};

// A plain console, and what it has put out.
struct Plain {
  explicit Plain(LabelStyle style) : format(make_plain_format({std::move(style)})) {}
  void take(std::uint32_t rank, std::string_view bytes, int stream = 1, std::int64_t time = 0) {
    format->take(stream_id(rank, stream), time, bytes, now, out);
  }
  // What is written when so much time has passed, and nothing has come meanwhile.
  std::string wait(std::chrono::milliseconds time) {
    const TimePoint end = now + time;
    const std::size_t before = out.size();
    for (auto due = format->due(); due && *due <= end; due = format->due()) {
      now = std::max(now, *due);
      format->elapse(now, out);
    }
    now = end;
    return out.substr(before);
  }
  void end(std::uint32_t rank, int stream = 1) { format->end_stream(stream_id(rank, stream), out); }

  std::unique_ptr<ConsoleFormat> format;
  TimePoint now{};
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
        std::size_t{10} << 10, kMostHeld - 1, kMostHeld}) {
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

TEST_CASE(
    "plain format writes a line of which it may not hold all whole, and begins before its end") {
  for (const LabelStyle& style : {kLabelled, kBare}) {
    Plain console(style);
    const std::string line(2 * kMostHeld + 1, 'z'), label = style.label ? "[0] " : "";
    console.take(0, line);
    CHECK(console.out == label + line);
    console.take(0, line + "\nnext\n");
    CHECK(console.out == label + line + line + "\n" + label + "next\n");
  }
}

TEST_CASE(
    "plain format keeps NULs, bytes that are no UTF-8, and a carriage return at a line's end") {
  const std::string line = "\0\xff\xfe\x80\r\n"s;
  for (std::size_t at = 0; at < line.size(); ++at) {
    Plain console(kLabelled);
    console.take(0, line.substr(0, at));
    console.take(0, line.substr(at));
    CHECK(console.out == "[0] " + line);
  }
}

TEST_CASE("without label one rank's bytes go through unchanged, however odd") {
  for (const std::string& text : {"a\nb"s, ""s, "\n"s, std::string(3 * kMostHeld + 5, 'x'),
                                  std::string(kMostHeld + 1, 'x') + "\nrest"}) {
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
  ::setenv("TZ", "UTC0", 1);
  ::tzset();
  const std::string label = "[0] 1970-01-01T00:00:";
  Plain console({true, true, false});
  console.take(0, "beg", 1, 1'000'000'000);
  console.take(0, "in\nnext\n", 1, 2'000'000'000);
  CHECK(console.out == label + "01.000000+00:00 begin\n" + label + "02.000000+00:00 next\n");
}

TEST_CASE("a state, and the rest of a line, bear the time at which they came") {
  ::setenv("TZ", "UTC0", 1);
  ::tzset();
  Plain console({true, true, false});
  const std::string label = "[0] 1970-01-01T00:00:", offset = ".000000+00:00 ";
  console.take(0, "\r1", 1, 1'000'000'000);
  console.take(0, "\r2", 1, 2'000'000'000);
  CHECK(console.wait(1s) == label + "02" + offset + "2");
  console.take(0, "\r3\n", 1, 3'000'000'000);
  CHECK(console.out.ends_with("\n" + label + "03" + offset + "3\n"));
  console.take(0, "begin ", 1, 4'000'000'000);
  console.wait(1s);
  console.format->note("note", console.out);
  console.take(0, "rest\n", 1, 6'000'000'000);
  CHECK(console.out.ends_with("\nnote\n" + label + "06" + offset + "\u2026rest\n"));
}

TEST_CASE("every stream's unfinished line comes out when all end") {
  Plain console(kLabelled);
  console.take(1, "b");
  console.take(0, "a", 2);
  console.format->end_all(console.out);
  CHECK(console.out == "[0] a\n[1] b\n");
}

TEST_CASE("the beginning of a line is written after a second, and what follows at once") {
  for (const LabelStyle& style : {kLabelled, kBare}) {
    Plain console(style);
    const std::string label = style.label ? "[0] " : "";
    console.take(0, "Na");
    CHECK(console.wait(900ms).empty());
    console.take(0, "me");
    CHECK(console.wait(99ms).empty());
    CHECK(console.wait(1ms) == label + "Name");
    console.take(0, "? ");
    console.take(0, "yes\nnext\n");
    CHECK(console.out == label + "Name? yes\n" + label + "next\n");
  }
}

TEST_CASE("a line that has begun is ended before anything else, and its rest has an ellipsis") {
  Plain console(kLabelled);
  console.take(0, "one ");
  console.take(1, "two ");
  console.wait(1s);
  CHECK(console.out == "[0] one \n[1] two ");
  console.take(0, "1");
  CHECK(console.wait(999ms).empty());
  CHECK(console.wait(1ms) == "\n[0] \u20261");
  console.format->note("hvrun: note", console.out);
  console.take(0, "!\n");
  console.take(1, "\n");
  console.take(1, "2\n");
  CHECK(console.out == "[0] one \n[1] two \n[0] \u20261\nhvrun: note\n[0] \u2026!\n[1] 2\n");
}

TEST_CASE("without labels a line that has begun is ended by a newline alone") {
  Plain console(kBare);
  console.take(0, "one ");
  console.wait(1s);
  console.take(0, "err\n", 2);
  console.take(0, "1\n");
  CHECK(console.out == "one \nerr\n1\n");
}

TEST_CASE("a beginning that is written has its end at the end of its stream") {
  Plain console(kLabelled);
  console.take(0, "half");
  console.wait(1s);
  console.end(0);
  CHECK(console.out == "[0] half\n");
  console.end(0);
  CHECK(console.out == "[0] half\n");
}

TEST_CASE("of a line that is overwritten the newest state is written, ever more rarely") {
  Plain console(kLabelled);
  std::vector<int> written_at;  // in seconds
  for (int tenth = 0; tenth < 1500; ++tenth) {
    console.take(0, "\r" + std::to_string(tenth));
    if (!console.wait(100ms).empty()) written_at.push_back((tenth + 1) / 10);
  }
  CHECK(written_at == std::vector<int>{1, 3, 7, 15, 31, 61, 91, 121});
  CHECK(console.out.starts_with("[0] 9\n[0] 29\n[0] 69\n[0] 149\n"));
  console.take(0, "\rdone\n");
  CHECK(console.out.ends_with("\n[0] 1209\n[0] done\n"));
}

TEST_CASE("states come with the carriage return before or after them, or at once") {
  for (const std::vector<std::string>& pieces :
       {std::vector<std::string>{"\r1", "\r2", "\r3", "\n"},
        {"1\r", "2\r", "3", "\n"},
        {"1\r2\r3\n"},
        {"1", "\r", "2\r3\n"},
        {"1\r2", "\r\r3\n"},
        {"1\r2\r3\r\n"},
        {"1\r", "3\r", "\n"}}) {
    Plain console(kLabelled);
    for (const std::string& piece : pieces) console.take(0, piece);
    CHECK(console.out == "[0] 3\n");
  }
}

TEST_CASE("a state that is written is ended by the next one, and not written twice") {
  Plain console(kLabelled);
  console.take(0, "1/3\r");
  CHECK(console.wait(1s) == "[0] 1/3");
  console.take(0, "2/3\r");
  CHECK(console.out == "[0] 1/3\n");
  CHECK(console.wait(2s) == "[0] 2/3");
  console.take(1, "other\n");
  console.take(0, "\n");
  CHECK(console.out == "[0] 1/3\n[0] 2/3\n[1] other\n");
  console.take(0, "3/3\r");
  CHECK(console.wait(1s) == "[0] 3/3");
  console.end(0);
  CHECK(console.out.ends_with("[0] 3/3\r\n"));
  console.take(0, "1\r");
  console.take(0, "2\r");
  console.end(0);
  CHECK(console.out.ends_with("[0] 2\n"));
}

TEST_CASE("of a line without end no more is held than of the longest") {
  Plain console(kLabelled);
  for (int i = 0; i < 40; ++i) console.take(0, std::string(100'000, '\r'));
  CHECK(console.out.empty());
  for (int i = 0; i < 40; ++i) console.take(0, "\r" + std::string(100'000, 'x'));
  CHECK(console.out.empty());
  console.take(0, "\n");
  CHECK(console.out == "[0] " + std::string(100'000, 'x') + "\n");
}

TEST_CASE("bytes are held until they are in the output, or replaced") {
  Plain console(kLabelled);
  const auto held = [&] { return console.format->held_bytes(stream_id(0, 1)); };
  console.take(0, "whole\nbegin");
  CHECK(held() == 5);
  console.take(0, "ning");
  CHECK(held() == 9);
  console.wait(1s);
  CHECK(held() == 0);
  console.take(0, " of it");
  CHECK(held() == 0);
  console.take(0, "\n1/3");
  CHECK(held() == 3);
  console.take(0, "\r2/3");
  CHECK(held() == 3);
  console.end(0);
  CHECK(held() == 0);
}

TEST_CASE("an empty line is one") {
  Plain console(kLabelled);
  console.take(0, "\n\n");
  CHECK(console.out == "[0] \n[0] \n");
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
      const char byte = static_cast<char>(random());
      bytes += random() % 10 == 0 ? '\n' : byte == '\r' ? 'r' : byte;
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

TEST_CASE("nothing but states that were overwritten is lost, whenever pieces come") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::map<std::uint32_t, std::string> written;
  Plain console(kLabelled);
  for (int step = 0; step < 5000; ++step) {
    const std::uint32_t rank = random() % 3;
    std::string bytes;
    for (std::size_t size = random() % 8; size > 0; --size) bytes += "\n\rabc"[random() % 5];
    written[rank] += bytes;
    console.take(rank, bytes);
    console.wait(std::chrono::milliseconds(random() % 3000));
  }
  console.format->end_all(console.out);
  CHECK(console.out.ends_with('\n'));
  std::map<std::uint32_t, std::vector<std::string>> arrived;
  for (const std::string& line : hv::split(console.out, '\n')) {
    if (line.empty()) continue;
    REQUIRE(line.substr(2, 2) == "] ");
    std::vector<std::string>& lines = arrived[static_cast<std::uint32_t>(line[1] - '0')];
    const std::string text = line.substr(4);
    if (text.starts_with("\u2026"))
      lines.back() += text.substr(3);
    else
      lines.push_back(text);
  }
  for (const auto& [rank, text] : written) {
    const std::vector<std::string>& lines = arrived[rank];
    std::size_t at = 0;
    for (std::string line : hv::split(text, '\n')) {
      line.erase(line.find_last_not_of('\r') + 1);
      const std::string last = line.substr(line.rfind('\r') + 1);
      const auto is_last = [&](const std::string& shown) {
        return shown.substr(0, shown.find_last_not_of('\r') + 1) == last;
      };
      if (last.empty()) continue;
      while (at < lines.size() && !is_last(lines[at])) ++at;
      REQUIRE(at < lines.size());
      ++at;
    }
  }
}
