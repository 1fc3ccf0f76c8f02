// Tests of rankfiles.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/rankfile.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv::launcher;
using hv::tests::message_of;

namespace {

HostList read_ranks(const std::string& content, const std::string& hosts = "") {
  const HostList named = hosts.empty() ? HostList{{}, true} : parse_host_expression(hosts);
  return add_rankfile(named, content, "ranks");
}

}  // namespace

TEST_CASE("a rankfile names hosts, or chooses among those that are named") {
  const HostList alone = read_ranks("# two\r\nrank 1=b\n\nrank 0=me@a slot=3\nrank 2=b");
  REQUIRE(alone.entries.size() == 2);
  CHECK_FALSE(alone.this_machine);
  CHECK(alone.entries[0].name == "a");
  CHECK(alone.entries[0].user == "me");
  CHECK(alone.entries[1].slots == 2);
  CHECK(alone.rank_places[0].cores == std::vector{3});
  const HostList chosen = read_ranks("rank 0=+n2\nrank 1=[fd00::1]\n", "a:2,[fd00::1]:2,c:2");
  CHECK(chosen.rank_places[0].entry == 2);
  CHECK(chosen.rank_places[1].entry == 1);
  CHECK(chosen.entries[2].slots == 2);
}

TEST_CASE("cores of a rankfile may be those of sockets, as OpenMPI has them") {
  const auto sockets = [](const std::string& slot) {
    const HostList list = read_ranks("rank 0=a slot=" + slot);
    std::string text;
    for (const SocketCores& one : list.rank_places[0].sockets) {
      text += (text.empty() ? "" : " ") + std::to_string(one.socket) + ":";
      for (const int core : one.cores) text += std::to_string(core) + ".";
    }
    return text;
  };
  CHECK(sockets("1:0-2") == "1:0.1.2.");
  CHECK(sockets("0:*") == "0:");
  CHECK(sockets("0:0,1;1:0") == "0:0.1. 1:0.");
  CHECK(sockets("1:3,0:0-1") == "0:0.1. 1:3.");
  CHECK(sockets("0-2") == "");
  const HostList spaced = read_ranks("rank 0=a slot = 2,3 gpus= 1");
  CHECK(spaced.rank_places[0].cores == std::vector{2, 3});
  CHECK(spaced.rank_places[0].gpus == std::vector<std::string>{"1"});
}

TEST_CASE("every kind of mistake in a rankfile is shown where it is") {
  struct Case {
    const char* content;
    const char* where;
  };
  for (const Case& c : {
           Case{"rank 0 a", "ranks:1:6: '0' names no rank and host"},
           Case{"rank=0 a", "ranks:1:1: this line gives no rank a place"},
           Case{"rank x=a", "ranks:1:6: 'x=a' names no rank and host"},
           Case{"rank -1=a", "ranks:1:6: '-1=a' names no rank and host"},
           Case{"rank 0=", "ranks:1:8: a host name is missing"},
           Case{"rank 0=-a", "ranks:1:8: a host name cannot begin with '-'"},
           Case{"rank 0=a:2", "ranks:1:10: a rank's host has no number of slots here"},
           Case{"rank 0=n[1-2]", "ranks:1:8: this expression stands for too many hosts"},
           Case{"rank 0=+nx", "ranks:1:8: '+nx' is no host's number"},
           Case{"rank 0=+n0", "ranks:1:8: +n counts hosts that are named elsewhere"},
           Case{"rank 0=a slot=", "ranks:1:15: '' is no core"},
           Case{"rank 0=a slot=3-1", "ranks:1:15: this range ends before it begins"},
           Case{"rank 0=a slot=0:", "ranks:1:17: '' is no core"},
           Case{"rank 0=a slot=x:1", "ranks:1:15: 'x' is no socket"},
           Case{"rank 0=a slot=0:1:2", "ranks:1:17: '1:2' is no core"},
           Case{"rank 0=a slot=0:1;", "ranks:1:18: nothing stands behind this"},
           Case{"rank 0=a slot=0:1;2", "ranks:1:20: the socket's cores are missing"},
           Case{"rank 0=a slot=0:1;0:2", "ranks:1:19: socket 0 is named twice"},
           Case{"rank 0=a slot=0:1 slot=2", "ranks:1:19: slot is stated twice"},
           Case{"rank 0=a slot=0-2,1", "ranks:1:19: core 1 is named twice"},
           Case{"rank 0=a slot=0-65535,0-65535,0-65535", "ranks:1:23: core 0 is named twice"},
           Case{"rank 0=a slot=0-99999999", "ranks:1:17: '99999999' is no core"},
           Case{"rank 0=a slot=1 slot=2", "ranks:1:17: slot is stated twice"},
           Case{"rank 0=a gpus=x", "ranks:1:15: 'x' is no GPU"},
           Case{"rank 0=a core=1", "ranks:1:10: 'core=1' is not understood"},
           Case{"rank 0=a\nrank 0=b", "ranks:2:6: rank 0 has a place in ranks:1"},
           Case{"rank 1=a", "ranks:1:6: rank 0 has no place, and rank 1 has one"},
           Case{"rank 0=a\nrank 2=a", "ranks:2:6: rank 1 has no place, and rank 2 has one"},
           Case{"# nothing", "ranks:1:1: no rank is given a place\n  # nothing\n  ^"},
       }) {
    CAPTURE(c.content);
    CHECK(message_of([&] { read_ranks(c.content); }).find(c.where) == 0);
  }
  CHECK(message_of([] {
          read_ranks("rank 0=c", "a,b");
        }).find("ranks:1:8: 'c' is none of the hosts") == 0);
  CHECK(message_of([] { read_ranks("rank 0=+n2", "a,b"); }).find("ranks:1:8: there are 2 hosts") ==
        0);
}
