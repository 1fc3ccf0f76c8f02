// The form for terminals: updates thinned out, beginnings shown after a second. Time is passed in.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "launcher/output/console_format.h"

using namespace std::chrono_literals;
using hv::TimePoint;
using hv::launcher::ConsoleFormat;
using hv::launcher::kMostHeld;
using hv::launcher::LabelStyle;
using hv::launcher::make_terminal_format;
using hv::launcher::stream_id;

namespace {

// A terminal of 40 columns with a clock of its own; text() gives what was put out since it was last
// asked.
constexpr std::uint32_t kTypist = 9;  // gets what is typed

struct Terminal {
  explicit Terminal(LabelStyle style = {true, false, false})
      : format(make_terminal_format({std::move(style), kMostHeld, kTypist},
                                    [] { return std::size_t{40}; })) {}
  void take(std::uint32_t rank, std::string_view bytes, int stream = 1) {
    format->take(stream_id(rank, stream), 0, bytes, time, out);
  }
  void pass(std::chrono::milliseconds duration) {
    time += duration;
    format->elapse(time, out);
  }
  std::string text() { return std::exchange(out, {}); }

  std::unique_ptr<ConsoleFormat> format;
  TimePoint time{1h};
  std::string out;
};

}  // namespace

TEST_CASE("terminal shows whole lines at once, labelled") {
  Terminal terminal;
  terminal.take(0, "a\nb\n");
  terminal.take(1, "c\r\n");
  CHECK(terminal.text() == "[0] a\n[0] b\n[1] c\n");
  CHECK_FALSE(terminal.format->due());
}

TEST_CASE("terminal shows the beginning of a line after one second, and appends the rest") {
  Terminal terminal;
  terminal.take(0, "Name? ");
  CHECK(terminal.format->due() == terminal.time + 1s);
  terminal.pass(999ms);
  CHECK(terminal.text().empty());
  terminal.pass(1ms);
  CHECK(terminal.text() == "[0] Name? ");
  CHECK_FALSE(terminal.format->due());
  terminal.take(0, "Bob");
  CHECK(terminal.text() == "Bob");
  terminal.take(0, "!\nnext\n");
  CHECK(terminal.text() == "!\n[0] next\n");
}

TEST_CASE("terminal begins a line with its label once a prompt has been answered") {
  Terminal terminal;
  const auto prompt = [&terminal](std::uint32_t rank) {
    terminal.take(rank, "Name? ");
    terminal.pass(1s);
    CHECK(terminal.text() == "[" + std::to_string(rank) + "] Name? ");
  };
  prompt(0);
  terminal.format->end_typed_row(0);  // "Bob\n" has been typed, and is shown
  terminal.take(0, "Hello Bob\n");
  CHECK(terminal.text() == "[0] Hello Bob\n");
  prompt(0);
  terminal.format->end_typed_row(0);
  terminal.take(1, "other\n");
  terminal.take(0, "\nHello\n");
  CHECK(terminal.text() == "[1] other\n[0] \n[0] Hello\n");
  prompt(1);
  terminal.format->end_typed_row(0);  // another rank's row has been ended, not its line
  terminal.take(1, "none\n");
  CHECK(terminal.text() == "[1] \u2026none\n");
  terminal.format->end_typed_row(0);  // no row stands open
  terminal.take(0, "10 %\r");
  terminal.pass(1s);
  CHECK(terminal.text() == "[0] 10 %");
  terminal.format->end_typed_row(0);
  terminal.take(0, "20 %\n");
  CHECK(terminal.text() == "[0] 20 %\n");
  CHECK_FALSE(terminal.format->due());
}

TEST_CASE("terminal counts the second from the first byte that is not shown") {
  Terminal terminal;
  terminal.take(0, "line\nbe");
  terminal.pass(600ms);
  terminal.take(0, "gin");
  CHECK(terminal.text() == "[0] line\n");
  terminal.pass(400ms);
  CHECK(terminal.text() == "[0] begin");
}

TEST_CASE("another rank's line ends a shown beginning, whose rest gets the label and an ellipsis") {
  Terminal terminal;
  terminal.take(0, "Load");
  terminal.pass(1s);
  terminal.take(1, "hello\n");
  terminal.take(0, "ing\n");
  CHECK(terminal.text() == "[0] Load\n[1] hello\n[0] \u2026ing\n");
}

TEST_CASE("the rest of an ended beginning waits a second too, and is shown once") {
  Terminal terminal;
  terminal.take(0, "a");
  terminal.pass(1s);
  terminal.take(1, "x\n");
  terminal.take(0, "b");
  terminal.pass(1s);
  terminal.take(1, "y\n");
  terminal.take(0, "c\n");
  CHECK(terminal.text() == "[0] a\n[1] x\n[0] \u2026b\n[1] y\n[0] \u2026c\n");
}

TEST_CASE("a line that was shown to its last byte is not shown again when its newline comes") {
  Terminal terminal;
  terminal.take(0, "done");
  terminal.pass(1s);
  terminal.take(1, "x\n");
  terminal.take(0, "\n");
  terminal.take(0, "next\n");
  CHECK(terminal.text() == "[0] done\n[1] x\n[0] next\n");
}

TEST_CASE("a rank's other stream ends its beginning as another rank would") {
  Terminal terminal;
  terminal.take(0, "work...");
  terminal.pass(1s);
  terminal.take(0, "warning\n", 2);
  terminal.take(0, " ok\n");
  CHECK(terminal.text() == "[0] work...\n[0] warning\n[0] \u2026 ok\n");
}

TEST_CASE("an update is shown at once and drawn over by the next") {
  Terminal terminal;
  terminal.take(0, "10%\r");
  CHECK(terminal.text() == "[0] 10%");
  terminal.pass(200ms);
  terminal.take(0, "20%\r");
  CHECK(terminal.text() == "\r[0] 20%");
  terminal.pass(1s);
  terminal.take(0, "done\n");
  CHECK(terminal.text() == "\r[0] done\n");
}

TEST_CASE("updates with a leading carriage return are shown too") {
  Terminal terminal;
  terminal.take(0, "\r 10%");
  CHECK(terminal.text() == "[0]  10%");
  terminal.pass(200ms);
  terminal.take(0, "\r 100%");
  CHECK(terminal.text() == "\r[0]  100%");
  terminal.take(0, "\n");
  CHECK(terminal.text() == "\r[0]  100%\n");
}

TEST_CASE("updates beyond five a second are skipped, the last one is not") {
  Terminal terminal;
  std::size_t drawn = 0;
  std::string all;
  for (int i = 0; i < 100; ++i) {  // one each 10 ms
    terminal.take(0, std::to_string(i) + "%\r");
    terminal.pass(10ms);
    const std::string text = terminal.text();
    drawn += text.empty() ? 0 : 1;
    all += text;
  }
  CHECK(drawn <= 6);
  CHECK(drawn >= 5);
  terminal.pass(200ms);
  all += terminal.text();
  CHECK(all.ends_with("99%"));
  CHECK_FALSE(terminal.format->due());
}

TEST_CASE("both streams of a rank share its five updates a second") {
  Terminal terminal;
  terminal.take(0, "out\r", 1);
  terminal.take(0, "err\r", 2);
  CHECK(terminal.text() == "[0] out");
  terminal.pass(200ms);
  CHECK(terminal.text() == "\r[0] err");
}

TEST_CASE(
    "updates that come in one piece show only the last, and the line that ends them is whole") {
  Terminal terminal;
  terminal.take(0, "1%\r2%\r3%\n");
  CHECK(terminal.text() == "[0] 3%\n");
}

TEST_CASE("a shorter update covers the longer one before it with blanks") {
  Terminal terminal;
  terminal.take(0, "long text\r");
  terminal.pass(1s);
  terminal.take(0, "short\r");
  CHECK(terminal.text() == "[0] long text\r[0] short    ");
  terminal.take(0, "x\n");
  CHECK(terminal.text() == "\r[0] x        \n");
}

TEST_CASE("an update longer than the terminal is clipped, the line that ends it is not") {
  Terminal terminal;
  const std::string bar(100, '#');
  terminal.take(0, bar + "\r");
  CHECK(terminal.text() == "[0] " + bar.substr(0, 35));
  terminal.take(0, "\n");
  CHECK(terminal.text() == "\r[0] " + bar + "\n");
}

TEST_CASE("colour is switched off where an update is clipped") {
  Terminal terminal;
  terminal.take(0, "\x1b[31m" + std::string(50, '#') + "\x1b[0m\r");
  CHECK(terminal.text().ends_with("#\x1b[0m"));
}

TEST_CASE("another rank's update takes the row of an update, its line ends the row first") {
  Terminal terminal;
  terminal.take(0, "10%\r");
  terminal.take(1, "90%\r");
  CHECK(terminal.text() == "[0] 10%\r[1] 90%");
  terminal.take(2, "line\n");
  CHECK(terminal.text() == "\n[2] line\n");
  terminal.take(0, "100%\n");
  CHECK(terminal.text() == "[0] 100%\n");
}

TEST_CASE("an update ends another rank's beginning with a newline") {
  Terminal terminal;
  terminal.take(0, "Name? ");
  terminal.pass(1s);
  terminal.take(1, "5%\r");
  CHECK(terminal.text() == "[0] Name? \n[1] 5%");
}

TEST_CASE("a beginning that turns into an update is drawn over") {
  Terminal terminal;
  terminal.take(0, "starting");
  terminal.pass(1s);
  terminal.take(0, "\r5%");
  CHECK(terminal.text() == "[0] starting\r[0] 5%      ");
}

TEST_CASE("a carriage return and newline in two reads end a line once") {
  Terminal terminal;
  terminal.take(0, "text\r");
  terminal.take(0, "\nnext\r\n");
  CHECK(terminal.text() == "[0] text\r[0] text\n[0] next\n");
}

TEST_CASE("a stream's end shows what is left of it") {
  Terminal terminal;
  terminal.take(0, "last");
  terminal.format->end_stream(stream_id(0, 1), terminal.out);
  CHECK(terminal.text() == "[0] last\n");
  terminal.take(1, "100%\r");
  terminal.format->end_all(terminal.out);
  CHECK(terminal.text() == "[1] 100%\r[1] 100%\n");
  CHECK_FALSE(terminal.format->due());
}

TEST_CASE("a terminal shows a long beginning at once, and holds nothing that it shows") {
  Terminal terminal;
  const auto held = [&] { return terminal.format->held_bytes(stream_id(0, 1)); };
  terminal.take(0, std::string(kMostHeld, 'z'));
  CHECK(held() == kMostHeld);
  CHECK(terminal.text().empty());
  terminal.take(0, "z");
  CHECK(held() == 0);
  CHECK(terminal.text() == "[0] " + std::string(kMostHeld + 1, 'z'));
  terminal.take(0, "\r1/2");
  terminal.take(0, "\r2/2");
  CHECK(held() == 3);
  terminal.pass(200ms);
  CHECK(held() == 0);
}

TEST_CASE("the prompt of the rank that is typed for is shown at once") {
  Terminal terminal;
  terminal.take(kTypist, "(Pdb) ");
  terminal.take(1, "(Pdb) ");
  terminal.pass(100ms);
  CHECK(terminal.text() == "[9] (Pdb) ");
}

TEST_CASE("a note ends the open row") {
  Terminal terminal;
  terminal.take(0, "Name? ");
  terminal.pass(1s);
  terminal.format->note("hvrun: hello", terminal.out);
  CHECK(terminal.text() == "[0] Name? \nhvrun: hello\n");
}

TEST_CASE("terminal cuts lines over 1 MiB as a pipe does") {
  Terminal terminal;
  const std::string piece(1 << 20, 'z');
  terminal.take(0, piece + "zz\n");
  CHECK(terminal.text() == "[0] " + piece + " [cont]\n[0] zz\n");
}

TEST_CASE("without label a terminal shows one rank's text as it is") {
  Terminal terminal({false, false, false});
  terminal.take(0, "a\n\nb");
  terminal.pass(1s);
  terminal.take(0, "c\n");
  CHECK(terminal.text() == "a\n\nbc\n");
}
