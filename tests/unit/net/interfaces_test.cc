// Which addresses of a host are told to others, and in which order.
// SPDX-License-Identifier: Apache-2.0
#include "src/net/interfaces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "src/base/unique_fd.h"
#include "src/net/address.h"

using hv::AddressKind;
using hv::InterfaceAddress;
using hv::InterfaceFilter;
using hv::SocketAddress;

namespace {

InterfaceAddress on(const std::string& interface, const std::string& ip) {
  return {interface, ip, hv::kind_of_address(interface, ip)};
}

// As on many a machine: a card, its IPv6, a fast network, and what containers left.
const std::vector<InterfaceAddress> kHost = {
    on("lo", "127.0.0.1"), on("docker0", "172.17.0.1"),   on("eth0", "10.1.2.3"),
    on("ib0", "10.9.0.3"), on("virbr0", "192.168.122.1"), on("lo", "::1"),
    on("eth0", "fd00::3"), on("eth0", "fe80::3"),         on("br-1a2b", "172.18.0.1")};

std::string chosen_by(const std::string& list) {
  const auto filter = InterfaceFilter::parse(list);
  REQUIRE(filter.has_value());
  return hv::describe(hv::choose_addresses(kHost, *filter));
}

}  // namespace

TEST_CASE("own addresses are those of interfaces, and all of the loopback network") {
  for (const char* own : {"127.0.0.1", "127.0.1.1", "::1"}) CHECK(hv::is_own_address(own));
  for (const hv::InterfaceAddress& address : hv::interfaces_up())
    CHECK(hv::is_own_address(address.ip));
  for (const char* other : {"192.0.2.7", "2001:db8::7", "localhost", ""})
    CHECK_FALSE(hv::is_own_address(other));
}

TEST_CASE("an address's kind follows from its interface's name and from itself") {
  CHECK(hv::kind_of_address("eth0", "10.0.0.1") == AddressKind::kNetwork);
  CHECK(hv::kind_of_address("br0", "10.0.0.1") == AddressKind::kNetwork);  // a host's own bridge
  for (const char* name : {"docker0", "virbr0", "br-1a2b3c", "vethab12", "cni0", "podman1"})
    CHECK(hv::kind_of_address(name, "172.17.0.1") == AddressKind::kInsideHost);
  CHECK(hv::kind_of_address("eth0", "fe80::1") == AddressKind::kLinkLocal);
  CHECK(hv::kind_of_address("eth0", "169.254.3.4") == AddressKind::kLinkLocal);
  CHECK(hv::kind_of_address("docker0", "127.0.0.1") == AddressKind::kLoopback);
  CHECK(hv::kind_of_address("lo", "::1") == AddressKind::kLoopback);
}

TEST_CASE("networks come first, then what stays inside a host, one wire's, loopback last") {
  CHECK(chosen_by("") ==
        "eth0 10.1.2.3, ib0 10.9.0.3, eth0 fd00::3, docker0 172.17.0.1, virbr0 192.168.122.1, "
        "br-1a2b 172.18.0.1, eth0 fe80::3, lo 127.0.0.1, lo ::1");
}

TEST_CASE("link-local addresses come with those first that may lead to another host") {
  std::vector<InterfaceAddress> host{on("docker0", "fe80::1"), on("eth1", "fe80::2"),
                                     on("vethab", "fe80::3"),  on("eth0", "fe80::4"),
                                     on("eth0", "10.0.0.1"),   on("ib0", "169.254.0.1")};
  host[1].has_carrier = false;
  CHECK(hv::describe(hv::choose_addresses(host, {})) ==
        "eth0 10.0.0.1, eth0 fe80::4, ib0 169.254.0.1, docker0 fe80::1, vethab fe80::3, "
        "eth1 fe80::2");
  // What is asked for is no bridge of containers to who asks.
  CHECK(hv::describe(hv::choose_addresses(host, *InterfaceFilter::parse("eth*,vethab"))) ==
        "eth0 10.0.0.1, vethab fe80::3, eth0 fe80::4, eth1 fe80::2");
}

TEST_CASE("a list names interfaces and subnets, and excludes with ! or ^") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"ib0", "ib0 10.9.0.3"},
      {"ib*", "ib0 10.9.0.3"},
      {"eth0,ib0", "eth0 10.1.2.3, ib0 10.9.0.3, eth0 fd00::3, eth0 fe80::3"},
      {"10.0.0.0/8", "eth0 10.1.2.3, ib0 10.9.0.3"},
      {"10.1.2.0/23", "eth0 10.1.2.3"},
      {"fd00::/64", "eth0 fd00::3"},
      {"eth0,!fe80::/10", "eth0 10.1.2.3, eth0 fd00::3"},
      {"10.0.0.0/8,!eth0", "ib0 10.9.0.3"},
      {" ib0 , lo", "ib0 10.9.0.3, lo 127.0.0.1, lo ::1"},
      {"!eth0,!lo,^docker*,!br-*,!virbr0", "ib0 10.9.0.3"},
      {"^eth0,lo,docker0,br-*,virbr0", "ib0 10.9.0.3"},
      {"0.0.0.0/0,!127.0.0.0/8,!172.16.0.0/12,!192.168.0.0/16", "eth0 10.1.2.3, ib0 10.9.0.3"},
      {"docker0,eth0,!fe80::/10", "docker0 172.17.0.1, eth0 10.1.2.3, eth0 fd00::3"},
      {"wlan0", "none"},
  };
  for (const auto& [list, expected] : table) {
    CAPTURE(list);
    CHECK(chosen_by(list) == expected);
  }
}

TEST_CASE("a list is told as it was given") {
  CHECK(InterfaceFilter::parse("^docker0,10.1.0.0/16")->text() == "^docker0,10.1.0.0/16");
}

TEST_CASE("a list with an empty item, a star inside or a subnet that makes no sense is refused") {
  for (const char* bad :
       {",", "eth0,", "!", "^", "*", "e*h0", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/-1",
        "/8", "eth0/8", "e th0", "!!eth0", "eth0 ib0"}) {
    CAPTURE(bad);
    CHECK_FALSE(InterfaceFilter::parse(bad).has_value());
  }
}

TEST_CASE("an interface's address is one that a program on this host can bind") {
  for (const std::string& ip : hv::interface_addresses(true)) {
    CAPTURE(ip);
    const auto address = SocketAddress::parse(ip, 0);
    REQUIRE(address.has_value());
    const hv::UniqueFd socket(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(::bind(socket.get(), address->raw(), address->size()) == 0);
  }
}

TEST_CASE("interface addresses leave out what never leaves this host or one wire") {
  const std::vector<std::string> addresses = hv::interface_addresses();
  for (const std::string& ip : addresses) {
    CAPTURE(ip);
    const auto address = *SocketAddress::parse(ip, 0);
    CHECK_FALSE(address.is_loopback());
    CHECK_FALSE(address.is_link_local());
  }
  CHECK(std::set(addresses.begin(), addresses.end()).size() == addresses.size());
}

TEST_CASE("with loopback those addresses come last, and the others stay the same") {
  const std::vector<std::string> others = hv::interface_addresses(false);
  const std::vector<std::string> all = hv::interface_addresses(true);
  REQUIRE(all.size() > others.size());
  CHECK(std::equal(others.begin(), others.end(), all.begin()));
  CHECK(std::find(all.begin(), all.end(), "127.0.0.1") >= all.begin() + others.size());
  for (std::size_t i = others.size(); i < all.size(); ++i)
    CHECK(SocketAddress::parse(all[i], 0)->is_loopback());
}
