// The room as a whole: real pipes and terminals at its ends.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_room.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <future>

#include "launcher/output/console_writer.h"
#include "tests/unit/output/room_fixture.h"

using namespace std::chrono_literals;
using namespace hv::launcher;
using hv::UniqueFd;

TEST_CASE("the room keeps stdout and stderr apart and labels both") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(0, 1, "to stdout\n"));
  room.add(chunk(1, 2, "to stderr\n"));
  room.note("hvrun: note");
  room.finish();
  CHECK(out.read_all() == "[0] to stdout\n");
  CHECK(errors.read_all() == "[1] to stderr\nhvrun: note\n");
}

TEST_CASE("one pipe for both streams gets whole lines in the order in which they came") {
  Pipe both;
  Owner owner;
  OutputRoom room(onto(both, both), owner.written(), owner.broken());
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string line(static_cast<std::size_t>(i * 37 % 9000), 'x');
    room.add(chunk(0, 1 + i % 2, line + "\n"));
    expected += "[0] " + line + "\n";
  }
  CHECK(both.read(expected.size()) == expected);
  room.finish();
}

TEST_CASE("the same file is recognised behind two descriptors") {
  Pipe one, other;
  const UniqueFd copy(::dup(one.writer.get()));
  CHECK(hv::launcher::is_same_file(one.writer.get(), copy.get()));
  CHECK_FALSE(hv::launcher::is_same_file(one.writer.get(), other.writer.get()));
  CHECK_FALSE(hv::launcher::is_same_file(one.writer.get(), -1));
}

TEST_CASE("bytes are acknowledged once they are written, and not while they are held back") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(3, 1, "whole\nbegin"));
  owner.wait_written(3, 6);  // and no byte more
  room.add(chunk(3, 1, "ning", true));
  owner.wait_written(3, 15);
  room.add(chunk(4, 1, "asks? "));
  CHECK(out.read(32) == "[3] whole\n[3] beginning\n[4] asks");
  owner.wait_written(4, 6);
  room.finish();
  CHECK(out.read_all() == "? \n");
}

TEST_CASE(
    "of a progress bar what has been replaced is acknowledged, and its newest state once shown") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  for (const char* state : {"\r1/3", "\r2/3"}) room.add(chunk(0, 1, state));
  owner.wait_written(0, 4);
  room.add(chunk(0, 1, "\r3/3\n"));
  owner.wait_written(0, 13);
  room.finish();
  CHECK(out.read_all() == "[0] 3/3\n");
}

TEST_CASE("what is held back when the room is given up was never acknowledged") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  const std::string more_than_a_pipe(200'000, 'x');
  room.add(chunk(0, 1, more_than_a_pipe));
  CHECK(out.read(4) == "[0] ");  // it is being written, to a reader that reads no more
  room.add(chunk(1, 1, more_than_a_pipe));
  CHECK_FALSE(room.finish_within(0ms));
  CHECK(owner.written_of(0) == 0);
  CHECK(owner.written_of(1) == 0);
  out.writer.release();  // as in the next test but one of threads that are left behind
  out.reader.reset();
}

TEST_CASE(
    "a reader that stands still delays acknowledgement, never the caller, and loses nothing") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  const std::string line(999, 'x');
  constexpr std::size_t kLines = 1000;  // 1 MB: far more than a pipe holds
  for (std::size_t i = 0; i < kLines; ++i) room.add(chunk(0, 1, line + "\n"));
  room.add(chunk(1, 2, "stderr goes on\n"));
  owner.wait_written(1, 15);
  CHECK(owner.written_of(0) < kLines * 1000);
  CHECK(out.read(kLines * 1004).size() == kLines * 1004);
  owner.wait_written(0, kLines * 1000);
  room.finish();
}

TEST_CASE("flush_then calls back when all that came before is written") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  OutputRoom room(options, owner.written(), owner.broken());
  std::promise<std::size_t> written;
  room.add(chunk(0, 1, "a\n"));
  room.flush_then([&] { written.set_value(folder.text_of("rank.0/stdout").size()); });
  CHECK(written.get_future().get() == 2);
  room.add(chunk(0, 2, "b\n"));
  room.flush();
  CHECK(folder.text_of("rank.0/stderr") == "b\n");
  room.finish();
  CHECK(out.read_all() == "[0] a\n");
  CHECK(errors.read_all() == "[0] b\n");
}

TEST_CASE("flush_then does not call back before the last byte is written") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  const std::string line(100'000, 'x');  // more than a pipe holds, less than a batch
  std::promise<void> written;
  auto is_written = written.get_future();
  room.add(
      chunk(0, 1, line + "\n"));  // keeps the writer busy, so that it takes the next two at once
  CHECK(out.read(1) == "[");
  room.add(chunk(0, 1, line + "\n"));
  room.flush_then([&] { written.set_value(); });
  CHECK(out.read(line.size() + 5).size() == line.size() + 5);  // the second write is under way
  CHECK(is_written.wait_for(0s) == std::future_status::timeout);
  CHECK(out.read(line.size() + 4).size() == line.size() + 4);
  is_written.get();
  room.finish();
}

TEST_CASE("a stream's end brings out its last line, while the room goes on") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(0, 1, "last", true));
  room.flush();
  owner.wait_written(0, 4);
  room.add(chunk(1, 1, "x\n"));
  room.finish();
  CHECK(out.read_all() == "[0] last\n[1] x\n");
}

TEST_CASE("a reader that has gone is told once, and nothing waits for it afterwards") {
  Pipe out, errors;
  Owner owner;
  out.reader.reset();
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(0, 1, "lost\n"));
  const Owner::Breakage breakage = owner.wait_broken();
  CHECK(breakage.errno_value == EPIPE);
  CHECK(breakage.stream == 1);
  CHECK(breakage.what == "write to standard output");
  room.add(chunk(0, 1, "lost too\n"));
  owner.wait_written(0, 14);
  room.finish();
  CHECK(owner.breakages() == 1);
}

TEST_CASE("a full device is told with the system's reason") {
  Pipe errors;
  Owner owner;
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  OutputOptions options;
  options.stdout_fd = full.get();
  options.stderr_fd = errors.writer.get();
  OutputRoom room(options, owner.written(), owner.broken());
  room.add(chunk(0, 1, "x\n"));
  CHECK(owner.wait_broken().errno_value == ENOSPC);
  room.finish();
}

TEST_CASE(
    "a descriptor that somebody else made non-blocking is written all the same, and stays as it "
    "is") {
  Pipe out, errors;
  Owner owner;
  REQUIRE(::fcntl(out.writer.get(), F_SETFL, O_NONBLOCK) == 0);
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  const std::string text = std::string(500'000, 'x') + "\n";
  room.add(chunk(0, 1, text));
  CHECK(out.read(text.size() + 4) == "[0] " + text);
  room.finish();
  CHECK(owner.breakages() == 0);
  CHECK((::fcntl(out.writer.get(), F_GETFL) & O_NONBLOCK) != 0);
}

TEST_CASE("the room sets O_NONBLOCK on nothing") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(0, 1, "x\n"));
  room.add(chunk(0, 2, "x\n"));
  room.flush();
  CHECK((::fcntl(out.writer.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(errors.writer.get(), F_GETFL) & O_NONBLOCK) == 0);
  room.finish();
}

TEST_CASE("finish_within leaves a blocked writer behind, and no callback comes afterwards") {
  Pipe out, errors;
  Owner owner;
  {
    OutputRoom room(onto(out, errors), owner.written(), owner.broken());
    room.add(chunk(0, 1, std::string(1 << 20, 'x') + "\n"));
    CHECK_FALSE(room.finish_within(20ms));
  }
  // The writer that was left behind gets EPIPE and ends. It may still look at its descriptor, as at
  // hvrun's own stdout: that must not become somebody else's.
  out.writer.release();
  out.reader.reset();
  CHECK(owner.written_of(0) == 0);
  CHECK(owner.breakages() == 0);
}

TEST_CASE("finish can be called twice") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.finish();
  room.finish();
  CHECK(room.finish_within(0ms));
}

TEST_CASE("a terminal gets the beginning of a line without more bytes arriving") {
  Owner owner;
  Pipe errors;
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(terminal);
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  const UniqueFd user(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(user);
  OutputOptions options;
  options.stdout_fd = user.get();
  options.stderr_fd = errors.writer.get();
  options.stdout_is_terminal = true;
  options.colour = true;
  OutputRoom room(options, owner.written(), owner.broken());
  room.add(chunk(0, 1, "Name? "));
  char buffer[100];
  const ssize_t got = ::read(terminal.get(), buffer, sizeof buffer);  // blocks until it is shown
  CHECK(std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0) ==
        "\x1b[36m[0]\x1b[0m Name? ");
  room.finish();
}

TEST_CASE("the room knows each rank's last lines") {
  Pipe out, errors;
  Owner owner;
  OutputRoom room(onto(out, errors), owner.written(), owner.broken());
  room.add(chunk(0, 1, "a\n"));
  room.add(chunk(0, 2, "b"));
  CHECK(room.last_lines(0) == std::vector<std::string>{"b"});
  CHECK(room.last_lines(1).empty());
  room.finish();
}
