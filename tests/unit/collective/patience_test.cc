// Tests of spin, yield, sleep.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/patience.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;
using std::chrono::microseconds;

TEST_CASE("patience ends after spin and yield, and begins anew when something happened") {
  Patience patience({microseconds(10), microseconds(50)});
  const TimePoint start = now();
  CHECK(patience.linger(start));
  CHECK(patience.linger(start + microseconds(59)));
  CHECK_FALSE(patience.linger(start + microseconds(60)));
  patience.renew();
  CHECK(patience.linger(start + microseconds(100)));
  CHECK(patience.linger(start + microseconds(159)));
  CHECK_FALSE(patience.linger(start + microseconds(160)));
}

TEST_CASE("after a yield that took long nobody yields for a while, and then again") {
  Patience patience({microseconds(10), microseconds(5000)});
  TimePoint time = now();
  const auto linger_at = [&](microseconds later) {
    time += later;
    patience.look(time);
    return patience.linger(time);
  };
  CHECK(linger_at(microseconds(0)));
  CHECK(linger_at(microseconds(20)));    // yields
  CHECK(linger_at(microseconds(1400)));  // that took its time, but not more; yields
  CHECK_FALSE(linger_at(microseconds(1600)));
  patience.renew();
  CHECK(linger_at(microseconds(10000)));  // spins
  CHECK_FALSE(linger_at(microseconds(20)));
  patience.renew();
  CHECK(linger_at(microseconds(10000)));
  CHECK(linger_at(microseconds(20)));  // 20 ms have passed: yields
}

TEST_CASE(
    "a long yield counts too when what was waited for has come meanwhile, and only a yield does") {
  Patience patience({microseconds(10), microseconds(50)});
  const TimePoint start = now();
  CHECK(patience.linger(start));
  CHECK(patience.linger(start + microseconds(20)));  // yields
  patience.look(start + microseconds(2000));
  patience.renew();
  CHECK(patience.linger(start + microseconds(2010)));
  CHECK_FALSE(patience.linger(start + microseconds(2030)));
  Patience other({microseconds(10), microseconds(50)});
  CHECK(other.linger(start));
  other.look(start + microseconds(2000));
  other.renew();
  CHECK(other.linger(start + microseconds(2000)));
  CHECK(other.linger(start + microseconds(2020)));
}

TEST_CASE(
    "with more ranks than cores or alone on a host nobody spins, and everybody still yields") {
  Topology topology;
  topology.local_ranks = {0, 1, 2};
  topology.usable_cores = 3;
  CHECK(patience_for(topology).spin > Duration::zero());
  const Duration yield = patience_for(topology).yield;
  topology.usable_cores = 2;
  CHECK(patience_for(topology).spin == Duration::zero());
  CHECK(patience_for(topology).yield == yield);
  topology.leaders = {0, 3};
  CHECK(patience_for(topology).yield > yield);
  topology.local_ranks = {0};
  CHECK(patience_for(topology).yield == yield);
  CHECK(patience_for(topology).spin == Duration::zero());
}
