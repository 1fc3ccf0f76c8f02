// Tests of launcher/supervise/hosts/address_choice and fence_table.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/address_choice.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/supervise/fence_table.h"
#include "src/wire/codec.h"

using namespace hv;
using namespace hv::launcher;

TEST_CASE(
    "the first address that all others reached is taken, one that several hosts share never "
    "proves") {
  // 172.17.0.1 is docker0 on every host: the process that answers there is on another host.
  const std::vector<std::vector<std::string>> candidates{{"172.17.0.1", "10.0.0.1"},
                                                         {"172.17.0.1", "10.0.0.2"}};
  const AddressChoice choice = choose_addresses(
      {"a", "b"}, candidates, {{0, 1, {"10.0.0.2"}, ""}, {1, 0, {"10.0.0.1"}, ""}});
  CHECK(choice.addresses == std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  CHECK(choice.warnings.empty());
}

TEST_CASE("of several addresses the one that most hosts reached wins, then the host's own order") {
  const std::vector<std::vector<std::string>> candidates{{"10.0.0.1", "10.1.0.1"}, {"x"}, {"y"}};
  const AddressChoice choice =
      choose_addresses({"a", "b", "c"}, candidates,
                       {{1, 0, {"10.1.0.1"}, ""}, {2, 0, {"10.0.0.1", "10.1.0.1"}, ""}});
  CHECK(choice.addresses[0] == "10.1.0.1");
}

TEST_CASE("addresses that all testers reached are common, others are not") {
  const AddressChoice choice = choose_addresses(
      {"a", "b", "c"}, {{"10.0.0.1", "10.1.0.1"}, {"x"}, {"y"}},
      {{1, 0, {"10.1.0.1"}, ""}, {2, 0, {"10.0.0.1", "10.1.0.1"}, ""}, {0, 1, {}, "refused"}});
  CHECK(choice.common == std::vector<std::vector<std::string>>{{"10.1.0.1"}, {}, {}});
}

TEST_CASE("Gloo and TensorPipe take the interface of the chosen address, NCCL what was reached") {
  wire::Facts facts;
  facts.addresses = {"10.0.0.1", "10.0.0.9", "10.1.0.1", "10.2.0.1", "172.17.0.1"};
  facts.interfaces = {"eth0", "eth0", "eth1", "eth2", "docker0"};
  using Names = std::vector<std::string>;
  const auto value = [&](const std::string& address, const Names& common, const char* name) {
    for (const auto& [key, text] : interface_variables(facts, address, common))
      if (key == name) return text;
    return std::string("unset");
  };
  for (const char* name : {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}) {
    CHECK(value("10.1.0.1", {"10.1.0.1"}, name) == "eth1");
    CHECK(value("10.1.0.1", {}, name) == "unset");
    CHECK(value("node7", {"10.1.0.1"}, name) == "unset");
  }
  const char* const nccl = "NCCL_SOCKET_IFNAME";
  CHECK(value("10.0.0.1", {"10.0.0.1", "10.1.0.1", "10.2.0.1"}, nccl) == "unset");
  CHECK(value("10.0.0.1", {"10.0.0.9", "10.1.0.1"}, nccl) == "=eth0,eth1");
  CHECK(value("172.17.0.1", {"172.17.0.1"}, nccl) == "=docker0");
  facts.interfaces[2] = "ib0";
  CHECK(value("10.0.0.1", {"10.0.0.1"}, nccl) == "=eth0");
  CHECK(value("10.0.0.1", {"10.0.0.1", "10.1.0.1"}, nccl) == "unset");
}

TEST_CASE("an interface that the user names and a host lacks is warned of") {
  wire::Facts a, b;
  a.interfaces = {"eth0", "ib0"};
  b.interfaces = {"eth0"};
  RankEnvironment ranks;
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}, {"b", &b}}).empty());
  ranks.set("GLOO_SOCKET_IFNAME", "eth0,ib0");
  ranks.set("TP_SOCKET_IFNAME", "eth0");
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}, {"b", &b}}) ==
        std::vector<std::string>{"host b has no interface 'ib0' with an address for other hosts, "
                                 "but GLOO_SOCKET_IFNAME names it; unset the variable, so that "
                                 "hvrun chooses the interface"});
  ranks.set("GLOO_SOCKET_IFNAME", "eth0,");
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}, {"b", &b}}).empty());
  ranks.set("GLOO_SOCKET_IFNAME", "lo");
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}, {"b", &b}}).size() == 1);
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}}).empty());
  ranks.set("TP_SOCKET_IFNAME", "eth0,ib0");
  CHECK(warnings_on_interfaces(ranks, {{"a", &a}}) ==
        std::vector<std::string>{"host a has no interface 'eth0,ib0' with an address, but "
                                 "TP_SOCKET_IFNAME names it; unset the variable, so that hvrun "
                                 "chooses the interface"});
}

TEST_CASE("a pair that cannot connect is reported with both names and the reason") {
  const AddressChoice choice =
      choose_addresses({"a", "b"}, {{"1"}, {"2"}}, {{0, 1, {}, "refused"}});
  REQUIRE(choice.warnings.size() == 1);
  CHECK(choice.warnings[0].find("host a reaches no address of host b (refused)") == 0);
}

TEST_CASE("a host that many do not reach, or that reaches none of many, is one warning") {
  const std::vector<std::string> names{"n1", "n2", "n3", "n4"};
  const std::vector<std::vector<std::string>> candidates{{"1"}, {"2"}, {"3"}, {"4"}};
  const AddressChoice to_one = choose_addresses(
      names, candidates, {{0, 3, {}, "refused"}, {1, 3, {}, "refused"}, {2, 3, {}, "refused"}});
  REQUIRE(to_one.warnings.size() == 1);
  CHECK(to_one.warnings[0].find("hosts n[1-3] reach no address of host n4 (refused)") == 0);
  const AddressChoice from_one = choose_addresses(
      names, candidates, {{3, 0, {}, "refused"}, {3, 1, {}, "refused"}, {3, 2, {}, "late"}});
  REQUIRE(from_one.warnings.size() == 2);
  CHECK(from_one.warnings[0].find("host n4 reaches no address of host n3 (late)") == 0);
  CHECK(from_one.warnings[1].find("host n4 reaches no address of hosts n[1-2] (refused)") == 0);
}

TEST_CASE("an address that several hosts have is not chosen when none was reached") {
  const std::vector<std::vector<std::string>> candidates{{"172.17.0.1", "10.0.0.1"},
                                                         {"172.17.0.1"}};
  const AddressChoice choice =
      choose_addresses({"a", "b"}, candidates, {{0, 1, {}, "refused"}, {1, 0, {}, "refused"}});
  CHECK(choice.addresses == std::vector<std::string>{"10.0.0.1", "b"});
}

TEST_CASE("an answer about an unknown host is ignored") {
  CHECK(choose_addresses({"a"}, {{"1"}}, {{0, 7, {"9"}, ""}}).addresses ==
        std::vector<std::string>{"1"});
}

TEST_CASE("few hosts probe all others, many probe host 0 and their neighbours") {
  CHECK(probe_partners(1, 3) == std::vector<int>{0, 2});
  const std::vector<int> partners = probe_partners(100, 1000);
  CHECK(partners.size() == 9);
  CHECK(partners.front() == 0);
  const std::vector<int> last = probe_partners(999, 1000);
  CHECK(std::count(last.begin(), last.end(), 0) == 1);
  CHECK(std::count(last.begin(), last.end(), 999) == 0);
}

TEST_CASE("the size of a fence's message is known before it is encoded") {
  const hv::wire::FenceOut out{1, 2, {{0, "key", "value"}, {7, "", std::string(1000, 'x')}}};
  CHECK(out.payload_bytes() == hv::encode(out).size());
}

TEST_CASE("a fence opens when every host has come, with what all put") {
  FenceTable table(2);
  CHECK_FALSE(table.arrive(HostId{0}, {0, 1, {{0, "k", "v0"}}}).has_value());
  CHECK_FALSE(
      table.arrive(HostId{0}, {0, 1, {{0, "k", "again"}}}).has_value());  // a repeat counts once
  CHECK_FALSE(table.arrive(HostId{1}, {0, 2, {}}).has_value());           // another fence
  const auto out = table.arrive(HostId{1}, {0, 1, {{1, "k", "v1"}}});
  REQUIRE(out.has_value());
  CHECK(out->puts.size() == 2);
  CHECK(out->number == 1);
}

TEST_CASE("of a fence that no agent could take nothing is kept, and it never opens") {
  FenceTable table(2);
  const hv::wire::FenceIn half{0, 1, {{0, "k", std::string(hv::wire::kMaxAgentPayload / 2, 'x')}}};
  CHECK_FALSE(table.arrive(HostId{0}, half).has_value());
  CHECK(table.excess_bytes() == 0);
  CHECK_FALSE(table.arrive(HostId{1}, half).has_value());
  CHECK(table.excess_bytes() > hv::wire::kMaxAgentPayload);
  CHECK(table.passed() == 0);
}

TEST_CASE("a host has the addresses that its ranks use") {
  hv::wire::Facts facts;
  facts.addresses = {"192.168.1.5", "10.0.0.5", "172.17.0.1", "fd00::5"};
  facts.interfaces = {"eth0", "ib0", "docker0", "ib0"};
  using Addresses = std::vector<std::string>;
  CHECK(allowed_addresses(facts, "") == facts.addresses);
  CHECK(allowed_addresses(facts, "ib0") == Addresses{"10.0.0.5", "fd00::5"});
  CHECK(allowed_addresses(facts, "10.0.0.0/8") == Addresses{"10.0.0.5"});
  CHECK(allowed_addresses(facts, "^eth0,docker0") == Addresses{"10.0.0.5", "fd00::5"});
  CHECK(allowed_addresses(facts, "eth9") == facts.addresses);  // the ranks report the error
  CHECK(allows_no_address(facts, "eth9"));
  CHECK(allows_no_address(facts, "^eth0,ib0,docker0"));
  CHECK_FALSE(allows_no_address(facts, "ib0"));
  CHECK_FALSE(allows_no_address(facts, ""));
  facts.interfaces.clear();  // an agent may report none
  CHECK(allowed_addresses(facts, "ib0") == facts.addresses);
  CHECK_FALSE(allows_no_address(facts, "eth9"));
}
