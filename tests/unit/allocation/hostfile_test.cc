// Tests of hostfiles of every dialect.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv::launcher;
using hv::tests::hint_of;
using hv::tests::message_of;

namespace {

// "a:2 b" : hosts with their stated slots.
std::string hostfile_picture(const HostList& list) {
  std::string text;
  for (const HostEntry& entry : list.entries) {
    text += (text.empty() ? "" : " ") + entry.name;
    if (entry.slots) text += ":" + std::to_string(*entry.slots);
  }
  return text;
}

std::string read_as(HostfileForm form, const std::string& content) {
  return hostfile_picture(parse_hostfile(content, "f", form));
}
std::string read(const std::string& content) { return read_as(HostfileForm::kAny, content); }

}  // namespace

TEST_CASE("every dialect is recognised by its lines") {
  CHECK(read("a slots=4 max-slots=8\nb slots=2 max_slots=2\n") == "a:4 b:2");
  CHECK(read("a:4\nb:2\n") == "a:4 b:2");
  CHECK(read("a 4 b 2\n") == "a:4 b:2");
  CHECK(read("a 4\nb 2\n") == "a:4 b:2");
  CHECK(read("a 4 all.q@a UNDEFINED\nb 2 all.q@b 0,1\nc 3 all.q@c 1\n") == "a:4 b:2 c:3");
  CHECK(read("n[01-02],gpu[1-2]x[a]\n") == "n01 n02 gpu1xa gpu2xa");
  CHECK(read("n[1-2]:4\n") == "n1:4 n2:4");
  CHECK(read("n[1-2] slots=4\n") == "n1:4 n2:4");
  CHECK(read("a:2,b:3\n") == "a:2 b:3");
  CHECK(read("[fd00::1] slots=2\n[fd00::2]:3\nme@[fd00::3]\n") == "fd00::1:2 fd00::2:3 fd00::3");
}

TEST_CASE("where a bare name repeats, every bare name is one slot a line") {
  CHECK(read("a\nb\na\n") == "a:2 b:1");
  CHECK(read("b\na\na\na\n") == "b:1 a:3");
  CHECK(read("a port=22\na port=22\nb ifname=eth1\n") == "a:2 b:1");
  CHECK(read("a\na\nb slots=4\nc gpus=0,1\n") == "a:2 b:4 c");  // which say it themselves
  CHECK(read("a\nb\n") == "a b");
  CHECK(read("a:2\nb\na\n") == "a:3 b");
  CHECK(hostfile_picture(parse_host_expression("a,a,b")) == "a:2 b:1");
}

TEST_CASE("a file that names no host is shown with its first line") {
  CHECK(message_of([] { read("# to do\n\n"); }) == "f:1:1: no host is named\n  # to do\n  ^");
  CHECK(message_of([] { read(""); }) == "f:1:1: no host is named\n  \n  ^");
}

TEST_CASE("a line may add how the host is reached and what of it is used") {
  const HostList list = parse_hostfile(
      "a slots=2 max-slots=8 user=me port=2200 identity=~/.ssh/lab gpus=0,GPU-5a1e "
      "address=10.0.0.1 "
      "ifname=eth1,ib0\nb:3 ifname=eth2 user=you\nc address=[fd00::7] gpus=MIG-3\n",
      "hosts");
  const HostEntry& a = list.entries[0];
  CHECK(a.slots == 2);
  CHECK(a.max_slots == 8);
  CHECK(a.user == "me");
  CHECK(a.port == 2200);
  CHECK(a.identity == "~/.ssh/lab");
  CHECK(a.gpus == std::vector<std::string>{"0", "GPU-5a1e"});
  CHECK(a.address == "10.0.0.1");
  CHECK(a.interfaces == "eth1,ib0");
  CHECK(list.entries[1].user == "you");
  CHECK(list.entries[1].slots == 3);
  CHECK(list.entries[1].interfaces == "eth2");
  CHECK(list.entries[2].address == "fd00::7");
  CHECK(list.entries[2].gpus == std::vector<std::string>{"MIG-3"});
}

TEST_CASE("a host that is named twice has the sum of its slots and one of everything else") {
  CHECK(read("Node1 slots=2\nnode1 slots=3\n") == "Node1:5");
  CHECK(read("a slots=2\na slots=1\n") == "a:3");
  CHECK(read("a:2\nb\na\n") == "a:3 b");
  CHECK(parse_hostfile("a port=22\na gpus=1\n", "f").entries[0].gpus.size() == 1);
  CHECK(parse_hostfile("a port=22\na port=22\n", "f").entries[0].port == 22);
  CHECK(message_of([] {
          read("a port=22\nb\na port=23\n");
        }).find("f:3:1: host 'a' has another port in f:1") == 0);
  CHECK(hint_of([] {
          parse_hostfile("gw port=2201\ngw port=2202\n", "f");
        }).find("'first address=gw port=2201', 'second address=gw port=2202'") !=
        std::string::npos);
  const HostList behind =
      parse_hostfile("first address=gw port=2201\nsecond address=gw port=2202\n", "f");
  CHECK(behind.entries.size() == 2);
  CHECK(parse_hostfile("a slots=4 max-slots=6\na slots=4\n", "f").entries[0].max_slots == 10);
  CHECK(message_of([] { read("a slots=65536\na\n"); }).find("has 65537 slots in all") !=
        std::string::npos);
}

TEST_CASE("a stated format takes its own lines only, and names of PBS and LSF are a slot a line") {
  CHECK(read_as(HostfileForm::kNames, "a\nb\na\n") == "a:2 b:1");
  CHECK(read_as(HostfileForm::kPairs, "a\nb\na\n") == "a:2 b:1");
  CHECK(read_as(HostfileForm::kPairs, "a 4 b 2") == "a:4 b:2");
  CHECK(read_as(HostfileForm::kQueues, "a 4 q@a UNDEFINED\nb 2\nc 3 q 1\n") == "a:4 b:2 c:3");
  CHECK(read_as(HostfileForm::kColon, "a:4\nb ifname=eth1\n") == "a:4 b");
  CHECK(read_as(HostfileForm::kSlots, "a slots=4\nb\n") == "a:4 b");
  CHECK(read_as(HostfileForm::kNodes, "n[1-2]\nm1,m2\n") == "n1 n2 m1 m2");
  struct Case {
    HostfileForm form;
    const char* line;
  };
  for (const Case& c : {
           Case{HostfileForm::kSlots, "a:4"},
           Case{HostfileForm::kColon, "a 4"},
           Case{HostfileForm::kNames, "a:4"},
           Case{HostfileForm::kNames, "a slots=1"},
           Case{HostfileForm::kPairs, "a 4 q@a UNDEFINED"},
           Case{HostfileForm::kQueues, "a"},
           Case{HostfileForm::kNodes, "n[1-2] slots=4"},
       }) {
    CAPTURE(c.line);
    CHECK(message_of([&] {
            read_as(c.form, c.line);
          }).find("f:1:1: this line is of another form than --hostfile-format states") == 0);
  }
}

TEST_CASE("formats are named as what writes them, and a slip is told") {
  CHECK(hostfile_form("auto") == HostfileForm::kAny);
  CHECK(hostfile_form("openmpi") == HostfileForm::kSlots);
  CHECK(hostfile_form("deepspeed") == HostfileForm::kSlots);
  CHECK(hostfile_form("mpich") == HostfileForm::kColon);
  CHECK(hostfile_form("horovod") == HostfileForm::kColon);
  CHECK(hostfile_form("pbs") == HostfileForm::kNames);
  CHECK(hostfile_form("lsf") == HostfileForm::kPairs);
  CHECK(hostfile_form("sge") == HostfileForm::kQueues);
  CHECK(hostfile_form("slurm") == HostfileForm::kNodes);
  CHECK(hint_of([] { hostfile_form("openmip"); }).find("expected openmpi?") == 0);
}

TEST_CASE("a slip in a line of pairs is no line of SGE's") {
  const auto refusal = [](const char* text) {
    return message_of([&] { parse_hostfile(text, "hosts"); });
  };
  CHECK(refusal("node1 4 node2 two").find("hosts:1:15: 'two' is no number of slots") == 0);
  CHECK(refusal("node1 4 node2").find("hosts:1:9: no number of slots stands behind this host") ==
        0);
  CHECK(refusal("node1 4 node2 4 node3").find("hosts:1:17: no number of slots") == 0);
  CHECK(read("a 4 all.q UNDEFINED\nb 2 all.q 0,1\nc 2 all.q <NULL>\n") == "a:4 b:2 c:2");
}

TEST_CASE("blanks may stand round the '=' of a setting") {
  const HostList list =
      parse_hostfile("a slots = 4 max-slots= 8\nb slots =2\tuser = me\n", "hosts");
  REQUIRE(list.entries.size() == 2);
  CHECK(list.entries[0].slots == 4);
  CHECK(list.entries[0].max_slots == 8);
  CHECK(list.entries[1].slots == 2);
  CHECK(list.entries[1].user == "me");
  const auto refusal = [](const char* text) {
    return message_of([&] { parse_hostfile(text, "hosts"); });
  };
  CHECK(refusal("a slots = max-slots=8").find("hosts:1:11: 'max-slots=8' is no number") == 0);
  CHECK(refusal("a slots =").find("hosts:1:10: '' is no number of slots") == 0);
  CHECK(refusal("a slots 4").find("hosts:1:3: 'slots' is not understood") == 0);
  CHECK(refusal("a = 4").find("hosts:1:3: '= 4' is not understood") == 0);
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
    const char* line;
    const char* where;
  };
  for (const Case& c : {
           Case{"a slots=1 slots=2", "f:1:11: slots is stated twice"},
           Case{"a:1 slots=2", "f:1:5: slots is stated twice"},
           Case{"a slots", "f:1:3: 'slots' is not understood"},
           Case{"a slot=2", "f:1:3: 'slot=2' is not understood"},
           Case{"a slots=", "f:1:9: '' is no number of slots"},
           Case{"a slots=-1", "f:1:9: '-1' is no number of slots"},
           Case{"a max-slots=0", "f:1:13: '0' is no number of slots"},
           Case{"a slots=4 max-slots=2", "f:1:11: max-slots is less than slots"},
           Case{"a max-slots=2 slots=4", "f:1:15: max-slots is less than slots"},
           Case{"-x slots=1", "f:1:1: a host name cannot begin with '-'"},
           Case{"a port=0", "f:1:8: '0' is no port"},
           Case{"a port=65536", "f:1:8: '65536' is no port"},
           Case{"a gpus=0,x", "f:1:10: 'x' is no GPU"},
           Case{"a gpus=0,0", "f:1:10: GPU '0' is named twice"},
           Case{"a gpus=", "f:1:8: '' is no GPU"},
           Case{"a gpus=64", "f:1:8: '64' is no GPU"},
           Case{"a address=x/y", "f:1:12: '/' cannot stand in a host name"},
           Case{"a address=", "f:1:11: an address has 1 to 253 bytes"},
           Case{"a user=-l", "f:1:8: '-l' is no user name"},
           Case{"a:2,u@b port=22", "f:1:1: 'a:2,u' is no user name"},
           Case{"me@a user=you", "f:1:6: user is stated twice"},
           Case{"a identity=-i", "f:1:12: '-i' is not understood"},
           Case{"a,b slots=2", "f:1:2: ',' cannot stand in a host name"},
           Case{"n[1-999999999] slots=4", "f:1:1: this expression stands for too many hosts"},
       }) {
    CAPTURE(c.line);
    CHECK(message_of([&] { read(c.line); }).find(c.where) == 0);
  }
  CHECK(hint_of([] { read("a slot=2"); }).find("expected slots=; also max-slots=, ") == 0);
}

TEST_CASE("a hostfile that is too large is refused") {
  const std::string large(kMostHostfileBytes + 1, '\n');
  CHECK(message_of([&] { read(large); }).find("is refused") != std::string::npos);
}

TEST_CASE("what would be repeated for very many hosts is bounded") {
  CHECK(message_of([] {
          read("n[1-65536] identity=" + std::string(2000, 'x'));
        }).find("f:1:21: ") == 0);
  CHECK(message_of([] { read(std::string(2000, 'u') + "@n[1-65536]"); }).find("is no user name") !=
        std::string::npos);
  std::string lines;
  for (int i = 0; i < 70; ++i) lines += "n[1-32768]\n";
  CHECK(message_of([&] { read(lines); }).find("are named more than 2097152 times") !=
        std::string::npos);
}
