// Tests of host expressions and hostfiles.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_list.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "src/base/error.h"

using namespace hv::launcher;

namespace {

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a host expression gives names, users and slots") {
  const HostList list = parse_host_expression("a:2,user@b:4,c,[fd00::1]:3,me@[fd00::2]");
  REQUIRE(list.entries.size() == 5);
  CHECK(list.entries[0].name == "a");
  CHECK(list.entries[0].slots == 2);
  CHECK(list.entries[1].user == "user");
  CHECK(list.entries[1].name == "b");
  CHECK(list.entries[1].slots == 4);
  CHECK_FALSE(list.entries[2].slots.has_value());
  CHECK(list.entries[3].name == "fd00::1");
  CHECK(list.entries[3].slots == 3);
  CHECK(list.entries[4].user == "me");
  CHECK(list.entries[4].name == "fd00::2");
}

TEST_CASE("a bare name that repeats has one slot for each time") {
  const HostList list = parse_host_expression("a,b,a,a");
  REQUIRE(list.entries.size() == 2);
  CHECK(list.entries[0].slots == 3);
  CHECK_FALSE(list.entries[1].slots.has_value());
}

TEST_CASE("stated slots of a repeated host are summed up") {
  CHECK(parse_host_expression("a:2,a:3").entries[0].slots == 5);
  CHECK(parse_hostfile("a slots=2\na slots=1\n", "hosts").entries[0].slots == 3);
}

TEST_CASE("a hostfile may have comments, blank lines, CRLF, tabs and no last newline") {
  const HostList list =
      parse_hostfile("# all of them\r\n\r\n  a\tslots=2 # fast\r\nroot@b slots=4\r\n\nc", "hosts");
  REQUIRE(list.entries.size() == 3);
  CHECK(list.entries[0].slots == 2);
  CHECK(list.entries[1].user == "root");
  CHECK(list.entries[2].name == "c");
  CHECK(list.entries[2].origin == "hosts:6");
}

TEST_CASE("a mistake in a hostfile is shown with file, line, column and a caret") {
  const std::string text =
      message_of([] { parse_hostfile("a slots=2\nb slots=two\n", "my/hosts"); });
  CHECK(text == "my/hosts:2:9: 'two' is no number of slots\n  b slots=two\n          ^");
}

TEST_CASE("every kind of mistake is refused, and shown where it is") {
  struct Case {
    const char* expression;
    const char* where;
  };
  for (const Case& c :
       {Case{"", "-H:1:"}, Case{"a,,b", "-H:3:"}, Case{"a:0", "-H:3:"}, Case{"a:x", "-H:3:"},
        Case{"a:", "-H:3:"}, Case{"a:99999999999", "-H:3:"}, Case{"@b", "-H:1:"},
        Case{"-oProxyCommand=x", "-H:1:"}, Case{"-l@b", "-H:1:"}, Case{"a b", "-H:2:"},
        Case{"a;b", "-H:2:"}, Case{"a:1:2", "-H:3:"}, Case{"a,", "-H:3:"}}) {
    CAPTURE(c.expression);
    const std::string text = message_of([&] { parse_host_expression(c.expression); });
    CHECK(text.find(c.where) == 0);
  }
  for (const char* file :
       {"a slots=1 slots=2", "a slots", "a gpus=2", "a slots=", "a slots=-1", "-x slots=1"}) {
    CAPTURE(file);
    CHECK(message_of([&] { parse_hostfile(file, "f"); }).find("f:1:") == 0);
  }
}

TEST_CASE("a hostfile that names nobody is refused") {
  CHECK(message_of([] { parse_hostfile("# nobody\n\n", "hosts"); }) == "hosts names no host");
}

TEST_CASE("a caret stands below its byte also in a long line") {
  const std::string text = message_of(
      [] { parse_hostfile(std::string(500, ' ') + "a slots=?" + std::string(500, 'x'), "f"); });
  const std::size_t line = text.find('\n') + 1, caret_line = text.find('\n', line) + 1;
  const std::size_t caret = text.find('^', caret_line) - caret_line;
  CHECK(text[line + caret] == '?');
}

TEST_CASE("random bytes are refused in words or understood, never a crash") {
  std::mt19937 random(11);
  const std::string alphabet = "ab1:,@[]#\n\r\t =slot-.\xff\0";
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    CAPTURE(text);
    for (const bool file : {false, true}) {
      try {
        const HostList list = file ? parse_hostfile(text, "f") : parse_host_expression(text);
        for (const HostEntry& entry : list.entries) {
          CHECK_FALSE(entry.name.empty());
          CHECK(entry.name[0] != '-');
          CHECK(entry.slots.value_or(1) >= 1);
        }
      } catch (const hv::Error&) {
      }
    }
  }
}
