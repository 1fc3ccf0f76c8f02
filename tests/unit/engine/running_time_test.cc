// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/running_time.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;
using std::chrono::seconds;

TEST_CASE("time runs with the clock as long as looks come often") {
  RunningTime running;
  const TimePoint start = now();
  CHECK(running.at(start) == start);
  for (int second = 1; second < 100; ++second)
    CHECK(running.at(start + seconds(second)) == start + seconds(second));
}

TEST_CASE("of a stop only the little counts that may be a slow look") {
  RunningTime running;
  const TimePoint start = now();
  CHECK(running.at(start) == start);
  CHECK(running.at(start + seconds(120)) == start + RunningTime::kMostAtOnce);
  CHECK(running.at(start + seconds(121)) == start + RunningTime::kMostAtOnce + seconds(1));
  CHECK(running.clock_time(start + RunningTime::kMostAtOnce + seconds(4)) == start + seconds(124));
  CHECK(running.clock_time(TimePoint::max()) == TimePoint::max());
}
