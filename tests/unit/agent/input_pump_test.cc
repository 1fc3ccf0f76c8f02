// How input ends at a terminal.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/input_pump.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <vector>

using namespace hv;
using launcher::EventLoop;
using launcher::InputPump;

namespace {

// The bytes that a terminal gets.
std::string typed(const std::vector<std::string>& inputs) {
  EventLoop loop;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const UniqueFd read_end(ends[0]);
  InputPump pump(loop, UniqueFd(ends[1]), true, [](std::uint32_t) {});
  for (const std::string& input : inputs) REQUIRE(pump.add(input));
  pump.end_input();
  char bytes[100];
  const ssize_t got = ::read(read_end.get(), bytes, sizeof bytes);
  return {bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

TEST_CASE("the end of a terminal's input is one Ctrl-D at the beginning of a line, else two") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "\4"},
      {{"abc\n"}, "abc\n\4"},
      {{"abc"}, "abc\4\4"},
      {{"abc\nde", "f"}, "abc\ndef\4\4"},
      {{"abc", ""}, "abc\4\4"},
      {{"abc\r"}, "abc\r\4"},
      {{"abc\4"}, "abc\4\4"},
  };
  for (const auto& [inputs, expected] : cases) {
    CAPTURE(expected);
    CHECK(typed(inputs) == expected);
  }
}
