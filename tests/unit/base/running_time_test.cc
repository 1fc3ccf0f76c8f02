// SPDX-License-Identifier: Apache-2.0
#include "src/base/running_time.h"

#include <doctest/doctest.h>

using namespace hv;
using std::chrono::seconds;

namespace {

constexpr Duration kMostAtOnce = seconds(5);

}  // namespace

TEST_CASE("time runs with the clock as long as looks come often") {
  RunningTime running(kMostAtOnce);
  const TimePoint start = now();
  CHECK(running.at(start) == start);
  for (int second = 1; second < 100; ++second)
    CHECK(running.at(start + seconds(second)) == start + seconds(second));
}

TEST_CASE("of a stop only the little counts that may be a slow look") {
  RunningTime running(kMostAtOnce);
  const TimePoint start = now();
  CHECK(running.at(start) == start);
  CHECK(running.at(start + seconds(120)) == start + kMostAtOnce);
  CHECK(running.at(start + seconds(121)) == start + kMostAtOnce + seconds(1));
  CHECK(running.clock_time(start + kMostAtOnce + seconds(4)) == start + seconds(124));
  CHECK(running.clock_time(TimePoint::max()) == TimePoint::max());
}
