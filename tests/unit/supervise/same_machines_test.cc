// Tests of launcher/supervise/hosts/same_machines.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/same_machines.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

namespace {

std::string words(const std::vector<HostOnMachine>& hosts) {
  const auto error = same_machines(hosts);
  return error ? error->what() : "";
}

}  // namespace

TEST_CASE("hosts on machines of their own are no error") {
  CHECK(words({}) == "");
  CHECK(words({{"a", "-H", std::nullopt}, {"b", "-H", std::nullopt}}) == "");
}

TEST_CASE("hosts that are one machine are named, each machine once") {
  CHECK(words({{"a", "hosts:1", std::nullopt}, {"b", "hosts:2", 0}}) ==
        "place the ranks: a (hosts:1) and b (hosts:2) are one machine");
  // Whoever was faster is first.
  CHECK(words({{"a", "-H", 2}, {"b", "-H", 2}, {"c", "-H", std::nullopt}}) ==
        "place the ranks: c (-H) and a (-H) and b (-H) are one machine");
  CHECK(words({{"a", "", 1}, {"b", "", std::nullopt}, {"c", "", std::nullopt}, {"d", "", 2}}) ==
        "place the ranks: b and a are one machine; c and d are one machine");
  CHECK(words({{"a", "", UINT32_MAX}, {"b", "", std::nullopt}}) ==
        "place the ranks: another host and a are one machine");
}

TEST_CASE(
    "one name, or address, and port under two users is one machine, whatever its agents found") {
  const auto host = [](const std::string& user, const std::string& name, std::uint16_t port = 0,
                       const std::string& address = "") {
    return HostOnMachine{name, "-H", std::nullopt, user, address, port};
  };
  CHECK(words({host("ada", "a"), host("bob", "a"), host("bob", "b")}) ==
        "place the ranks: ada@a (-H) and bob@a (-H) are one machine");
  CHECK(words({host("", "a"), host("bob", "a")}) ==
        "place the ranks: a (-H) and bob@a (-H) are one machine");
  CHECK(words({host("ada", "a", 22, "10.0.0.1"), host("bob", "b", 22, "10.0.0.1")}) ==
        "place the ranks: ada@a (-H) and bob@b (-H) are one machine");
  CHECK(words({host("ada", "a", 2201), host("bob", "a", 2202)}) == "");  // a container each
}

TEST_CASE("of many names some are told") {
  std::vector<HostOnMachine> hosts{{"h0", "", std::nullopt}};
  for (int i = 1; i < 20; ++i) hosts.push_back({"h" + std::to_string(i), "", 0});
  CHECK(words(hosts).find("h7 and 12 more are one machine") != std::string::npos);
}
