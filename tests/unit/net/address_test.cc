// Tests of src/net/address.
// SPDX-License-Identifier: Apache-2.0
#include "src/net/address.h"

#include <doctest/doctest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "src/base/unique_fd.h"

using hv::SocketAddress;
using namespace std::string_literals;

TEST_CASE("numeric addresses parse and show in their shortest form") {
  const struct {
    const char* written;
    const char* ip;
    const char* text;
    int family;
  } cases[] = {
      {"10.0.0.1", "10.0.0.1", "10.0.0.1:22", AF_INET},
      {"0.0.0.0", "0.0.0.0", "0.0.0.0:22", AF_INET},
      {"255.255.255.255", "255.255.255.255", "255.255.255.255:22", AF_INET},
      {"fd00::1", "fd00::1", "[fd00::1]:22", AF_INET6},
      {"FD00:0:0::0001", "fd00::1", "[fd00::1]:22", AF_INET6},
      {"::", "::", "[::]:22", AF_INET6},
      {"::ffff:10.0.0.1", "::ffff:10.0.0.1", "[::ffff:10.0.0.1]:22", AF_INET6},
  };
  for (const auto& [written, ip, text, family] : cases) {
    CAPTURE(written);
    const auto address = SocketAddress::parse(written, 22);
    REQUIRE(address.has_value());
    CHECK(address->ip() == ip);
    CHECK(address->text() == text);
    CHECK(address->family() == family);
    CHECK(address->size() == (family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
    CHECK(SocketAddress::parse(address->ip(), 22)->text() == address->text());
  }
}

TEST_CASE("what is no numeric address does not parse, and no name is resolved") {
  for (const std::string& bad : {""s,           "localhost"s,  "10.0.0"s,
                                 "10.0.0.256"s, "10.0.0.1.2"s, "010.0.0.1"s,
                                 " 10.0.0.1"s,  "10.0.0.1 "s,  "10.0.0.1:22"s,
                                 "0x7f000001"s, "2130706433"s, ":"s,
                                 ":::"s,        "1::2::3"s,    "[::1]"s,
                                 "::g"s,        "12345::"s,    "1:2:3:4:5:6:7:8:9"s,
                                 "10.0.0.1\0"s, "::1\0x"s}) {
    CAPTURE(bad);
    CHECK_FALSE(SocketAddress::parse(bad, 22).has_value());
  }
}

TEST_CASE("a scope is an interface of this host and belongs to IPv6 only") {
  const unsigned loopback = ::if_nametoindex("lo");
  REQUIRE(loopback != 0);
  const auto scoped = SocketAddress::parse("fe80::1%lo", 22);
  REQUIRE(scoped.has_value());
  CHECK(reinterpret_cast<const sockaddr_in6*>(scoped->raw())->sin6_scope_id == loopback);
  CHECK(scoped->ip() == "fe80::1");
  CHECK(scoped->text() == "[fe80::1%lo]:22");
  for (const char* bad : {"fe80::1%", "fe80::1%nosuchinterface", "10.0.0.1%lo", "%lo"}) {
    CAPTURE(bad);
    CHECK_FALSE(SocketAddress::parse(bad, 22).has_value());
  }
}

TEST_CASE("a port is kept up to its limits, in the order of the network") {
  for (const int port : {0, 1, 258, 32768, 65535}) {
    for (const char* ip : {"10.0.0.1", "fd00::1"}) {
      const auto address = SocketAddress::parse(ip, static_cast<std::uint16_t>(port));
      CHECK(address->port() == port);
      CHECK(address->text().substr(address->text().rfind(':')) == ":" + std::to_string(port));
    }
  }
  const auto address = *SocketAddress::parse("10.0.0.1", 258);
  CHECK(reinterpret_cast<const sockaddr_in*>(address.raw())->sin_port == htons(258));
}

TEST_CASE("any is the address of all interfaces of a family") {
  CHECK(SocketAddress::any(AF_INET, 80).text() == "0.0.0.0:80");
  CHECK(SocketAddress::any(AF_INET6, 80).text() == "[::]:80");
}

TEST_CASE("a raw address is taken over, and never more of it than there is room for") {
  const auto address = *SocketAddress::parse("fd00::1", 4711);
  const auto copy = SocketAddress::from_raw(address.raw(), address.size());
  CHECK(copy.text() == "[fd00::1]:4711");
  CHECK(copy.size() == address.size());
  struct {
    sockaddr_storage storage;
    char beyond[64];
  } large{};
  large.storage.ss_family = AF_INET;
  const auto cut = SocketAddress::from_raw(reinterpret_cast<sockaddr*>(&large), sizeof large);
  CHECK(cut.size() == sizeof(sockaddr_storage));
  CHECK(cut.ip() == "0.0.0.0");
}

TEST_CASE("an address of another family has no IP text and is nobody's neighbour") {
  const SocketAddress none;
  CHECK(none.size() == 0);
  CHECK(none.ip().empty());
  CHECK_FALSE(none.is_loopback());
  CHECK_FALSE(none.is_link_local());
}

TEST_CASE("loopback and link-local addresses are told apart at the edges of their networks") {
  const struct {
    const char* ip;
    bool is_loopback, is_link_local;
  } cases[] = {
      {"126.255.255.255", false, false},
      {"127.0.0.0", true, false},
      {"127.255.255.255", true, false},
      {"128.0.0.0", false, false},
      {"169.253.255.255", false, false},
      {"169.254.0.0", false, true},
      {"169.254.255.255", false, true},
      {"169.255.0.0", false, false},
      {"10.0.0.127", false, false},
      {"::1", true, false},
      {"::", false, false},
      {"::2", false, false},
      {"fe7f:ffff::1", false, false},
      {"fe80::", false, true},
      {"febf:ffff::1", false, true},
      {"fec0::1", false, false},
      {"fd00::1", false, false},
  };
  for (const auto& [ip, is_loopback, is_link_local] : cases) {
    CAPTURE(ip);
    const auto address = *SocketAddress::parse(ip, 0);
    CHECK(address.is_loopback() == is_loopback);
    CHECK(address.is_link_local() == is_link_local);
  }
}
