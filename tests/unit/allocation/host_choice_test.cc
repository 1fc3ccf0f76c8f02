// Tests of -H beside a hostfile, --include and --exclude.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_choice.h"

#include <doctest/doctest.h>

#include <map>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/hostfile.h"
#include "src/base/text.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv::launcher;
using hv::tests::hint_of;
using hv::tests::message_of;

namespace {

// "a:2(0,1) b": hosts with slots and GPUs.
std::string picture(const HostList& list) {
  std::string text;
  for (const HostEntry& entry : list.entries) {
    text += (text.empty() ? "" : " ") + entry.name;
    if (entry.slots) text += ":" + std::to_string(*entry.slots);
    if (!entry.gpus.empty()) text += "(" + hv::join(entry.gpus, ",") + ")";
    for (const int gpu : entry.without_gpus) text += "-" + std::to_string(gpu);
  }
  return text;
}

HostList lab() {
  return parse_hostfile("w1 slots=4 port=2200\nw2 slots=4\nw3\nw4 slots=2 gpus=5,7\n", "hosts");
}
std::string chosen(const std::string& wanted) {
  return picture(choose_hosts(lab(), "hosts", wanted));
}
std::string included(const std::string& words) { return picture(include_hosts(lab(), words)); }
std::string excluded(const std::string& words) { return picture(exclude_hosts(lab(), words)); }

}  // namespace

TEST_CASE("-H beside a hostfile chooses from it, in -H's order, with what the file says of them") {
  CHECK(chosen("w2,w1") == "w2:4 w1:4");
  CHECK(chosen("w[1-2]:2,w3:7") == "w1:2 w2:2 w3:7");
  CHECK(choose_hosts(lab(), "hosts", "w1").entries[0].port == 2200);
  CHECK(message_of([] { chosen("w1,w9"); }) ==
        "-H:4: 'w9' is none of the hosts of hosts\n  w1,w9\n     ^");
  CHECK(hint_of([] { chosen("w9"); }).find("w[1-4]") != std::string::npos);
  CHECK(message_of([] { chosen("w1:5"); }) ==
        "-H:1: 'w1' has 4 slots in hosts:1, and 5 are asked for\n  w1:5\n  ^");
  CHECK(chosen("w3,w3") == "w3:2");
  const HostList with_user = parse_hostfile("u@w1 slots=4\n", "hosts");
  CHECK(message_of([&] { choose_hosts(with_user, "hosts", "w1,u@w1:2"); }) ==
        "-H:4: 'w1' is named in two ways\n  w1,u@w1:2\n     ^");
}

TEST_CASE("--include takes hosts and slots, each slot a GPU of what the host's line states") {
  CHECK(included("w1") == "w1:4");
  CHECK(included("w2@w1:0,2") == "w2:4 w1:2(0,2)");
  CHECK(included("w3:1") == "w3:1(1)");
  CHECK(included("w4:1") == "w4:1(7)");
}

TEST_CASE(
    "--exclude leaves the others, and a host whose number of slots is not known tells it later") {
  CHECK(excluded("w1@w3") == "w2:4 w4:2(5,7)");
  CHECK(excluded("w1:0,3@w2") == "w1:2(1,2) w3 w4:2(5,7)");
  CHECK(excluded("w3:1") == "w1:4 w2:4 w3-1 w4:2(5,7)");
  CHECK(excluded("w4:0,1") == "w1:4 w2:4 w3");
  CHECK(message_of([] { excluded("w1@w2@w3@w4"); }).find("no host or slot is left") !=
        std::string::npos);
}

TEST_CASE("a host is chosen by another form of its name, unless that may mean several") {
  const HostList list = parse_hostfile(
      "n1.lab.example\nN2\nn3\njob.1.example\njob.2.example\n"
      "10.0.0.1\n",
      "hosts");
  const auto names = [&](const std::string& wanted) {
    return picture(choose_hosts(list, "hosts", wanted));
  };
  CHECK(names("n1") == "n1.lab.example");
  CHECK(names("N1.lab") == "n1.lab.example");
  CHECK(names("n2.lab.example,n3.lab") == "N2 n3");
  CHECK(names("job.1.example,job.2.example") == "job.1.example job.2.example");
  CHECK(picture(include_hosts(list, "N1:0@n3.other")) == "n1.lab.example:1(0) n3");
  CHECK(picture(exclude_hosts(list, "n1@n2@n3@job.1.example@job.2.example")) == "10.0.0.1");
  CHECK(message_of([&] {
          names("job");
        }).find("-H:1: 'job' may be job.1.example (hosts:4) or job.2.example (hosts:5)\n") == 0);
  CHECK(message_of([&] { names("n1.lab,n1"); }).find("-H:8: 'n1' is named in two ways") == 0);
  for (const char* unknown : {"n1.la", "n", "10", "10.0.0", "10.0.0.1.x"})
    CHECK(message_of([&] { names(unknown); }).find("is none of the hosts") != std::string::npos);
}

TEST_CASE("a host is chosen by its address, and only a name that fits no other way is looked up") {
  const HostList list = parse_hostfile("n1\nn2 address=10.0.0.2\nn3\ntwin1\ntwin2\n", "hosts");
  const std::map<std::string, std::vector<std::string>> known{
      {"n1", {"10.0.0.1", "fd00::1"}}, {"trainer", {"10.0.0.1"}}, {"10.0.0.2", {"10.0.0.2"}},
      {"fd00::1", {"fd00::1"}},        {"twin1", {"10.0.0.5"}},   {"twin2", {"10.0.0.5"}},
      {"10.0.0.5", {"10.0.0.5"}}};
  int calls = 0;
  const AddressLookup look_up = [&](const std::vector<std::string>& names) {
    ++calls;
    std::vector<std::vector<std::string>> addresses;
    for (const std::string& name : names)
      addresses.push_back(known.count(name) > 0 ? known.at(name) : std::vector<std::string>{});
    return addresses;
  };
  const auto names = [&](const std::string& wanted) {
    return picture(choose_hosts(list, "hosts", wanted, look_up));
  };
  CHECK(names("n1,N2.lab") == "n1 n2");
  CHECK(calls == 0);
  CHECK(names("trainer,10.0.0.2") == "n1 n2");
  CHECK(names("[fd00::1]") == "n1");
  CHECK(picture(exclude_hosts(list, "10.0.0.2@trainer@n3", look_up)) == "twin1 twin2");
  CHECK(picture(include_hosts(list, "trainer:1", look_up)) == "n1:1(1)");
  calls = 0;
  HostIndex index(list, look_up);
  index.expect({"trainer", "n2", "10.0.0.2", "unknown"});
  CHECK(index.find("", "unknown", {"-H", 0, ""}, 0) == nullptr);
  CHECK(index.find("", "trainer", {"-H", 0, ""}, 0)->name == "n1");
  CHECK(index.find("", "10.0.0.2", {"-H", 0, ""}, 0)->name == "n2");
  CHECK(calls == 1);
  CHECK(message_of([&] { names("10.0.0.5"); }).find("'10.0.0.5' may be twin1") !=
        std::string::npos);
  CHECK(message_of([&] { names("10.0.0.9"); }).find("is none of the hosts") != std::string::npos);
}

TEST_CASE("mistakes in --include and --exclude are shown where they are") {
  struct Case {
    const char* words;
    const char* where;
  };
  for (const Case& c : {
           Case{"w9", "--include:1: 'w9' is none of the hosts"},
           Case{"w1@", "--include:4: a host name is missing"},
           Case{"w1@w1", "--include:4: host 'w1' is named twice"},
           Case{"w1:4", "--include:4: w1 has no slot 4"},
           Case{"w4:2", "--include:4: w4 has no slot 2"},
           Case{"w1:0,0", "--include:6: slot '0' is named twice"},
           Case{"w1:", "--include:4: '' is no slot"},
           Case{"w1:x", "--include:4: 'x' is no slot"},
           Case{"w1:-1", "--include:4: '-1' is no slot"},
       }) {
    CAPTURE(c.words);
    CHECK(message_of([&] { included(c.words); }).find(c.where) == 0);
  }
}

TEST_CASE("choosing takes a moment from very many hosts, too") {
  const HostList many = parse_host_expression("n[1-65536]");
  CHECK(choose_hosts(many, "hosts", "n[1-65536]").entries.size() == 65536);
  std::string all = "n1";
  for (int i = 2; i <= 65535; ++i) all += "@n" + std::to_string(i);
  CHECK(picture(exclude_hosts(many, all)) == "n65536");
}

TEST_CASE("some of the hosts are reached as all of them are") {
  HostList pods = lab();
  pods.reach = {{"/opt/kube/kubectl"}, true};
  const std::string first = pods.entries.front().name;
  for (const HostList& chosen :
       {choose_hosts(pods, "lab", first), include_hosts(pods, first), exclude_hosts(pods, first)}) {
    CHECK(chosen.reach.kubectl == pods.reach.kubectl);
    CHECK(chosen.reach.may_come_late);
  }
}
