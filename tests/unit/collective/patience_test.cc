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

TEST_CASE("with more ranks than cores nobody spins, and everybody still yields") {
  CHECK(patience_for(1).spin > Duration::zero());
  CHECK(patience_for(1 << 20).spin == Duration::zero());
  CHECK(patience_for(1 << 20).yield == patience_for(1).yield);
}
