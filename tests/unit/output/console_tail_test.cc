// What a console got last.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/console_tail.h"

#include <doctest/doctest.h>

#include "launcher/output/recent_lines.h"

using hv::launcher::ConsoleTail;
using hv::launcher::LabelStyle;
using Lines = std::vector<std::string>;

namespace {

const LabelStyle kLabelled{true, false, false};

bool ends_with(const std::string& written, const Lines& lines, std::uint32_t rank = 0,
               LabelStyle style = kLabelled) {
  ConsoleTail tail(style);
  tail.add(written);
  return tail.ends_with(lines, rank);
}

}  // namespace

TEST_CASE("lines are the last text where each stands whole, in order, with its rank's label") {
  CHECK(ends_with("[0] a\n[0] b\n", {"a", "b"}));
  CHECK(ends_with("[0] a\n[0] \n[0] b", {"a", "", "b"}));
  CHECK(ends_with("[1] x\n[0] b\r\n", {"b"}));
  CHECK(ends_with("[0 node1] b\n", {"b"}));
  CHECK_FALSE(ends_with("[0] a\n[0] b\n", {"x", "b"}));
  CHECK_FALSE(ends_with("[0] b\n", {"a", "b"}));
  CHECK_FALSE(ends_with("[0] a\n[1] x\n[0] b\n", {"a", "b"}));
  CHECK_FALSE(ends_with("[0] a\nhvrun: warning\n", {"a"}));
  CHECK_FALSE(ends_with("[10] a\n", {"a"}));
  CHECK_FALSE(ends_with("[0] error: a\n", {"a"}));
  CHECK_FALSE(ends_with("[0] \u2026a\n", {"a"}));
  CHECK_FALSE(ends_with("", {"a"}));
  CHECK_FALSE(ends_with("[0] a\n", {}));
}

TEST_CASE("a label is known in each of its forms") {
  const std::string time = "2026-11-21T05:40:48.123456+01:00 ";
  CHECK(ends_with("\x1b[36m[0]\x1b[0m a\n", {"a"}, 0, {true, false, true}));
  CHECK(ends_with("\x1b[32m[13 n7]\x1b[0m " + time + "a\n", {"a"}, 13, {true, true, true}));
  CHECK(ends_with(time + "a\n", {"a"}, 0, {false, true, false}));
  CHECK(ends_with("b\na\n", {"a"}, 0, {false, false, false}));
  CHECK_FALSE(ends_with("ba\n", {"a"}, 0, {false, false, false}));
  CHECK_FALSE(ends_with("[0] " + time + "b a\n", {"a"}, 0, {true, true, false}));
}

TEST_CASE("a tail is bounded, and long enough for all last lines of a rank") {
  ConsoleTail tail(kLabelled);
  Lines lines;
  for (std::size_t i = 0; i < hv::launcher::kRecentLines; ++i)
    lines.push_back(std::string(hv::launcher::kRecentBytes / hv::launcher::kRecentLines - 1, 'x'));
  for (int times = 0; times < 20; ++times)
    for (const std::string& line : lines)
      tail.add("[0 " + std::string(253, 'h') + "] " + line + "\n");
  CHECK(tail.ends_with(lines, 0));
  tail.add(std::string(1 << 20, 'y') + "\n");
  CHECK_FALSE(tail.ends_with(lines, 0));
}
