// Tests of hosts as -H states them.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_expression.h"

#include <doctest/doctest.h>

#include <random>

#include "launcher/allocation/hostfile.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv::launcher;
using hv::tests::hint_of;
using hv::tests::message_of;

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

TEST_CASE("where a bare name repeats, each has one slot for each time") {
  const HostList list = parse_host_expression("a,b,a,a");
  REQUIRE(list.entries.size() == 2);
  CHECK(list.entries[0].slots == 3);
  CHECK(list.entries[1].slots == 1);
}

TEST_CASE("stated slots of a repeated host are summed up") {
  CHECK(parse_host_expression("a:2,a:3").entries[0].slots == 5);
  CHECK(parse_host_expression("n[1-2]:2,n1:3").entries[0].slots == 5);
}

TEST_CASE("a node expression stands for its hosts, each with the slots and the user") {
  const HostList list = parse_host_expression("me@n[01-02]:4,gpu[1-2]x[a],b");
  REQUIRE(list.entries.size() == 5);
  CHECK(list.entries[1].name == "n02");
  CHECK(list.entries[1].user == "me");
  CHECK(list.entries[1].slots == 4);
  CHECK(list.entries[3].name == "gpu2xa");
  CHECK_FALSE(list.entries[3].slots.has_value());
  CHECK(list.entries[4].name == "b");
}

TEST_CASE("more hosts than are ever taken are refused, in one expression and in many") {
  CHECK(message_of([] { parse_host_expression("n[1-999999999]"); }).find("too many hosts") !=
        std::string::npos);
  CHECK(message_of([] { parse_host_expression("n[1-65536],m"); }).find("more than 65536 hosts") !=
        std::string::npos);
  CHECK(parse_host_expression("n[1-40000],n[1-40000]").entries[39999].slots == 2);
  CHECK(parse_host_expression("n[1-65536]").entries.size() == 65536);
}

TEST_CASE("an address of IPv6 without its brackets is told how it is written") {
  CHECK(hint_of([] { parse_host_expression("fd00::1"); }) == "expected [fd00::1] or [fd00::1]:4");
  CHECK(hint_of([] { parse_host_expression("1:2:3:4:5:6:7:8"); }) ==
        "expected [fd00::1] or [fd00::1]:4");
}

TEST_CASE("a port behind a host is told where it is written") {
  CHECK(message_of([] { parse_host_expression("gw:2201:1"); }).find("-H:4: '2201:1' is no") == 0);
  CHECK(hint_of([] { parse_host_expression("gw:2201:1"); }) ==
        "expected HOST:SLOTS; a port stands in a hostfile (gw port=2201 slots=1) or in --ssh-port");
}

TEST_CASE("every kind of mistake is refused, and shown where it is") {
  struct Case {
    const char* expression;
    const char* where;
  };
  for (const Case& c :
       {Case{"", "-H:1:"}, Case{"a,,b", "-H:3:"}, Case{"a:-1", "-H:3:"}, Case{"a:x", "-H:3:"},
        Case{"a:", "-H:3:"}, Case{"a:99999999999", "-H:3:"}, Case{"@b", "-H:1:"},
        Case{"-oProxyCommand=x", "-H:1:"}, Case{"-l@b", "-H:1:"}, Case{"a b", "-H:2:"},
        Case{"a;b", "-H:2:"}, Case{"a:1:2", "-H:3:"}, Case{"a,", "-H:3:"}}) {
    CAPTURE(c.expression);
    const std::string text = message_of([&] { parse_host_expression(c.expression); });
    CHECK(text.find(c.where) == 0);
  }
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
