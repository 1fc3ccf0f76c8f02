// Tests of launcher/supervise/hosts/same_machines.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/same_machines.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

namespace {

std::string error_text(const std::vector<HostOnMachine>& hosts) {
  const auto error = same_machines(hosts);
  return error ? error->what() : "";
}

}  // namespace

TEST_CASE("hosts on machines of their own are no error") {
  CHECK(error_text({}) == "");
  CHECK(error_text({{"a", "-H", std::nullopt}, {"b", "-H", std::nullopt}}) == "");
}

TEST_CASE("hosts that are one machine are named, each machine once") {
  CHECK(error_text({{"a", "hosts:1", std::nullopt}, {"b", "hosts:2", 0}}) ==
        "place the ranks: a (hosts:1) and b (hosts:2) are one machine");
  // The fastest agent is the first one.
  CHECK(error_text({{"a", "-H", 2}, {"b", "-H", 2}, {"c", "-H", std::nullopt}}) ==
        "place the ranks: a,b,c (-H) are one machine");
  CHECK(
      error_text({{"a", "", 1}, {"b", "", std::nullopt}, {"c", "", std::nullopt}, {"d", "", 2}}) ==
      "place the ranks: a,b are one machine; c,d are one machine");
  // Agents that started at the same time.
  CHECK(error_text({{"a", "", 1}, {"b", "", 0}, {"c", "", 0}, {"d", "", 1}, {"e", "", 3}}) ==
        "place the ranks: a,b,c,d,e are one machine");
  CHECK(error_text({{"a", "", UINT32_MAX}, {"b", "", std::nullopt}}) ==
        "place the ranks: another host and a are one machine");
}

TEST_CASE(
    "one name, or address, and port under two users is one machine, whatever its agents found") {
  const auto host = [](const std::string& user, const std::string& name, std::uint16_t port = 0,
                       const std::string& address = "") {
    return HostOnMachine{name, "-H", std::nullopt, user, address, port};
  };
  CHECK(error_text({host("ada", "a"), host("bob", "a"), host("bob", "b")}) ==
        "place the ranks: ada@a,bob@a (-H) are one machine");
  CHECK(error_text({host("", "a"), host("bob", "a")}) ==
        "place the ranks: a,bob@a (-H) are one machine");
  CHECK(error_text({host("ada", "a", 22, "10.0.0.1"), host("bob", "b", 22, "10.0.0.1")}) ==
        "place the ranks: ada@a,bob@b (-H) are one machine");
  CHECK(error_text({host("ada", "a", 2201), host("bob", "a", 2202)}) == "");  // a container each
}

TEST_CASE("names are folded, with their origins where these are few, and all are counted") {
  const auto hosts = [](const auto& origin_of) {
    std::vector<HostOnMachine> all{{"h0", origin_of(0), std::nullopt}};
    for (int i = 1; i < 20; ++i) all.push_back({"h" + std::to_string(i), origin_of(i), 0});
    return all;
  };
  CHECK(error_text(hosts([](int) { return "-H"; })) ==
        "place the ranks: h[0-19] (20 hosts) (-H) are one machine");
  CHECK(error_text(hosts([](int i) { return i < 2 ? "hosts:1" : "hosts:2"; })) ==
        "place the ranks: h[0-1] (hosts:1) and h[2-19] (18 hosts) (hosts:2) are one machine");
  CHECK(error_text(hosts([](int i) { return "hosts:" + std::to_string(i); })) ==
        "place the ranks: h[0-19] (20 hosts) are one machine");
}

TEST_CASE("machines beyond the first eight are counted") {
  std::vector<HostOnMachine> hosts;
  for (std::uint32_t i = 0; i < 11; ++i) {
    hosts.push_back({"h" + std::to_string(i), "", std::nullopt});
    hosts.push_back({"ib" + std::to_string(i), "", 2 * i});
  }
  const std::string text = error_text(hosts);
  CHECK(text.find("h0,ib0 are one machine; ") != std::string::npos);
  CHECK(text.ends_with("h7,ib7 are one machine; 3 more machines have several names, too"));
}
