// Tests of bounded_seconds() of src/base/clock.h.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/bounded_seconds.h"

#include <doctest/doctest.h>

#include <limits>

using namespace std::chrono_literals;

TEST_CASE("seconds from outside become a duration that no clock overflows on") {
  using Numbers = std::numeric_limits<double>;
  CHECK(hv::bounded_seconds(1.5) == 1500ms);
  CHECK(hv::bounded_seconds(0) == 0s);
  CHECK(hv::bounded_seconds(-1) == 0s);
  CHECK(hv::bounded_seconds(Numbers::quiet_NaN()) == 0s);
  for (const double wild : {1e7, 1e300, Numbers::infinity()})
    CHECK(hv::bounded_seconds(wild) == 1'000'000s);
  CHECK(hv::now() + hv::bounded_seconds(Numbers::max()) > hv::now());
}
