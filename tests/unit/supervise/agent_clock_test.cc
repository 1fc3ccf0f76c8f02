// Tests of launcher/supervise/hosts/agent_clock.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/agent_clock.h"

#include <doctest/doctest.h>

using hv::launcher::AgentClock;

TEST_CASE("a one-way time sets the clock until there is an exchange") {
  AgentClock clock;
  clock.add_one_way(1500, 1000);
  CHECK(clock.ahead() == 500);
  CHECK(clock.corrected(1600) == 1100);
  CHECK(!clock.round_trip());
  clock.add_exchange(2000, 2300, 2020);
  CHECK(clock.ahead() == 290);
  clock.add_one_way(9000, 3000);
  CHECK(clock.ahead() == 290);
}

TEST_CASE("the exchange with the shortest round trip sets the clock") {
  AgentClock clock;
  clock.add_exchange(1000, 6010, 1020);
  CHECK(clock.ahead() == 5000);
  clock.add_exchange(2000, 90'000, 2021);
  CHECK(clock.ahead() == 5000);
  clock.add_exchange(3000, 8006, 3010);
  CHECK(clock.ahead() == 5001);
  CHECK(clock.round_trip() == 10);
}

TEST_CASE("a time that cannot be makes no difference undefined") {
  for (const std::int64_t wild : {INT64_MIN, INT64_MAX}) {
    AgentClock clock;
    clock.add_one_way(wild, 1000);
    CHECK(clock.corrected(wild) == 1000);
    (void)clock.corrected(-1 - wild);
    clock.add_exchange(wild, wild, 1000);
    (void)clock.corrected(-1 - wild);
    CHECK(*clock.round_trip() >= 0);
  }
}
