// Tests of runtime/transport/tcp/link_local.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/link_local.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;

namespace {

using Pairs = std::vector<std::string>;

InterfaceAddress on(const std::string& interface, const std::string& ip) {
  return {interface, ip, kind_of_address(interface, ip)};
}

}  // namespace

TEST_CASE("an address is tried over every interface of this host, its namesake first") {
  const std::vector<InterfaceAddress> own{on("eth0", "10.0.0.1"), on("eth0", "fe80::a"),
                                          on("ib0", "fe80::b"), on("ib0", "fe80::c"),
                                          on("lo", "::1")},
      theirs{on("ib0", "fe80::1"), on("eno1", "fe80::2")};
  CHECK(link_local_pairs(theirs, own, 64) ==
        Pairs{"fe80::1%ib0", "fe80::1%eth0", "fe80::2%eth0", "fe80::2%ib0"});
  CHECK(link_local_pairs(theirs, own, 2) == Pairs{"fe80::1%ib0", "fe80::1%eth0"});
  CHECK(link_local_pairs(theirs, own, 0).empty());
}

TEST_CASE("an interface without such an address of its own has no scope") {
  CHECK(link_local_pairs({on("eth0", "fe80::1")},
                         {on("eth0", "10.0.0.1"), on("eth1", "169.254.1.1")}, 64)
            .empty());
}

TEST_CASE("of hosts with many interfaces, all namesakes are among the first") {
  std::vector<InterfaceAddress> own, theirs;
  for (int i = 0; i < 50; ++i) own.push_back(on("v" + std::to_string(i), "fe80::1"));
  for (int i = 15; i >= 0; --i) theirs.push_back(on("v" + std::to_string(i), "fe80::2"));
  const Pairs pairs = link_local_pairs(theirs, own, 64);
  REQUIRE(pairs.size() == 64);
  CHECK(pairs[0] == "fe80::2%v15");
  CHECK(pairs[15] == "fe80::2%v0");
}
