// Ranges of ports: what is understood, and listening inside one.
// SPDX-License-Identifier: Apache-2.0
#include "src/net/port_range.h"

#include <doctest/doctest.h>

#include <vector>

#include "src/net/socket.h"

TEST_CASE("a port range is first-last or one port, and empty text is any port") {
  CHECK(hv::parse_port_range("")->is_any());
  CHECK(hv::parse_port_range("20000-20099")->text() == "20000-20099");
  CHECK(hv::parse_port_range("20000-20099")->count() == 100);
  CHECK(hv::parse_port_range("1")->text() == "1");
  CHECK(hv::parse_port_range("1-65535")->count() == 65535);
  CHECK(hv::PortRange{}.text() == "any");
}

TEST_CASE("a port range that is backwards, outside of 1 to 65535 or no number is refused") {
  for (const char* bad : {"0", "0-5", "20-10", "1-65536", "-5", "5-", "-", "a-b", "1-2-3", " 1-2",
                          "1 - 2", "70000"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_port_range(bad).has_value());
  }
}

TEST_CASE("every port of a range is used before it is full, wherever the search begins") {
  // A range of three that nobody else uses at this moment: found by trying.
  for (int first = 21000; first < 60000; first += 3) {
    const hv::PortRange range{static_cast<std::uint16_t>(first),
                              static_cast<std::uint16_t>(first + 2)};
    std::vector<hv::UniqueFd> taken;
    std::vector<bool> seen(3);
    for (std::uint32_t start : {7u, 7u, 2u}) {
      hv::UniqueFd listener;
      std::uint16_t port = 0;
      if (!hv::listen_tcp_in(range, start, &listener, &port).ok()) break;
      REQUIRE(port >= range.first);
      REQUIRE(port <= range.last);
      CHECK_FALSE(seen[port - range.first]);
      seen[port - range.first] = true;
      taken.push_back(std::move(listener));
    }
    if (taken.size() < 3) continue;  // somebody else listens there
    hv::UniqueFd listener;
    std::uint16_t port = 0;
    const hv::Status status = hv::listen_tcp_in(range, 1, &listener, &port);
    CHECK_FALSE(status.ok());
    CHECK(status.message.find("no port of " + range.text() + " is free") != std::string::npos);
    return;
  }
  FAIL("no three free ports in a row");
}

TEST_CASE("held ports of a range are its last ones, each once, and who listens keeps off them") {
  // A range of four that nobody else uses at this moment: found by trying.
  for (int first = 21000; first < 60000; first += 4) {
    const hv::PortRange range{static_cast<std::uint16_t>(first),
                              static_cast<std::uint16_t>(first + 3)};
    hv::UniqueFd master, other, third, fourth, rank, late;
    std::uint16_t port = 0;
    const bool is_free = hv::hold_tcp_port_in(range, &master, &port).ok() && port == range.last &&
                         hv::hold_tcp_port_in(range, &other, &port).ok() && port == range.first;
    if (!is_free) continue;
    CHECK(hv::listen_tcp_in(range, 3, &third, &port).ok());
    if (port != first + 1) continue;
    CHECK(hv::listen_tcp_in(range, 3, &fourth, &port).ok());
    if (port != first + 2) continue;
    // A rank that is told a held port can listen there; so can, at last, who has no choice.
    CHECK(hv::listen_tcp(range.last, &rank, &port).ok());
    const hv::PortRange all_but_first{range.first, range.last, range.first};
    CHECK_FALSE(hv::listen_tcp_in(all_but_first, 0, &late, &port).ok());
    CHECK(hv::listen_tcp_in(range, 0, &late, &port).ok());
    CHECK(port == range.first);
    return;
  }
  FAIL("no four free ports in a row");
}
