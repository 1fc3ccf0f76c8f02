// Tests of src/base/clock.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/clock.h"

#include <doctest/doctest.h>

#include <ctime>

using namespace std::chrono_literals;

TEST_CASE("wall_clock_ns counts nanoseconds since 1970") {
  const auto before = static_cast<std::int64_t>(std::time(nullptr));
  const std::int64_t stamp_ns = hv::wall_clock_ns();
  const auto after = static_cast<std::int64_t>(std::time(nullptr));
  // time() may lag the precise clock by a tick, and a stepped clock by more; a wrong unit is off by
  // 1000.
  CHECK(stamp_ns / 1'000'000'000 >= before - 10);
  CHECK(stamp_ns / 1'000'000'000 <= after + 10);
}

TEST_CASE("now never goes back") {
  hv::TimePoint last = hv::now();
  for (int i = 0; i < 1000; ++i) {
    const hv::TimePoint next = hv::now();
    REQUIRE(next >= last);
    last = next;
  }
}

TEST_CASE("seconds_since counts in seconds, also towards the future") {
  const double past_s = hv::seconds_since(hv::now() - 1500ms);
  CHECK(past_s >= 1.5);
  CHECK(past_s < 1000);
  const double future_s = hv::seconds_since(hv::now() + 1h);
  CHECK(future_s <= -2600);
  CHECK(future_s > -3601);
}

TEST_CASE("seconds_text writes seconds as people do") {
  CHECK(hv::seconds_text(30s) == "30 s");
  CHECK(hv::seconds_text(500ms) == "0.5 s");
  CHECK(hv::seconds_text(0s) == "0 s");
  CHECK(hv::seconds_text(1000000s) == "1000000 s");
}

TEST_CASE("a short wait has tenths of seconds, a long one whole ones, and none is rounded up") {
  CHECK(hv::waited_text(1599ms) == "1.5 s");
  CHECK(hv::waited_text(2049ms) == "2 s");
  CHECK(hv::waited_text(9999ms) == "9.9 s");
  CHECK(hv::waited_text(61999ms) == "61 s");
}
