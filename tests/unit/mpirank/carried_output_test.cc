// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/carried_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

struct Pipe {
  UniqueFd from, to;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
};

// A shell script's output behind the carrier, whose children have no time at all. Nothing is read
// of it before the script has written a byte to its standard input.
std::string carried_of(const std::string& script) {
  Pipe output, signal;
  ::fcntl(output.to.get(), F_SETPIPE_SZ, 4096);
  std::fflush(nullptr);  // the thread sanitizer's _exit() writes what the child has of it, too
  const pid_t carrier = ::fork();
  if (carrier == 0) {
    ::dup2(signal.to.get(), 0);
    ::dup2(output.to.get(), 1);
    carry_output({"/bin/sh", "-c", script}, {{}, Environment::of_process()}, Duration::zero());
    ::_exit(127);
  }
  output.to.reset();
  signal.to.reset();
  std::string text, bytes;
  std::array<char, 4096> piece;
  CHECK(::read(signal.from.get(), piece.data(), 1) == 1);
  for (ssize_t got; (got = ::read(output.from.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  int status = -1;
  CHECK(::waitpid(carrier, &status, 0) == carrier);
  CHECK(status == 0);
  CarriedDecoder().decode(text, &bytes);
  return bytes;
}

TEST_CASE("carried_output has all that a program left in its pipe, however late it is taken") {
  const std::string bytes = carried_of("head -c 60000 /dev/zero; echo end; echo >&0");
  CHECK(bytes.size() == 60004);
  CHECK(bytes.substr(std::min<std::size_t>(60000, bytes.size())) == "end\n");
}

TEST_CASE("carried_output ends though a child of the program holds its streams") {
  const std::string pid = carried_of("tail -f /dev/null & echo $!; echo >&0");
  REQUIRE(parse_integer(trim(pid)));
  CHECK(::kill(static_cast<pid_t>(*parse_integer(trim(pid))), SIGKILL) == 0);
}

TEST_CASE("carried_output tells the program of no descriptor that it has not") {
  ::setenv("OPAL_OUTPUT_STDERR_FD", "27", 1);
  const std::string bytes = carried_of("echo ${OPAL_OUTPUT_STDERR_FD-none}; echo >&0");
  ::unsetenv("OPAL_OUTPUT_STDERR_FD");
  CHECK(bytes == "none\n");
}

TEST_CASE("carried_output comes back as it was, byte for byte") {
  std::string bytes;
  for (int i = 0; i < 256 * 20; ++i) bytes += static_cast<char>(i % 256);
  std::string text, back;
  encode_carried(bytes, &text);
  CarriedDecoder decoder;
  for (const char c : text) decoder.decode({&c, 1}, &back);
  CHECK(back == bytes);
}

TEST_CASE("carried_output has long lines only, and no opening bracket in them") {
  std::string text;
  encode_carried(std::string(9000, '\n') + "[[", &text);
  CHECK(text.find('[') == std::string::npos);
  const auto lines = split(text, '\n');
  CHECK(lines.size() == 20);  // the last one is what stands behind the last newline
  for (const std::string& line : lines) CHECK(line.size() <= 1001);
}

TEST_CASE("carried_output of nothing is nothing") {
  std::string text;
  encode_carried("", &text);
  CHECK(text.empty());
}

}  // namespace
}  // namespace hv::launcher
