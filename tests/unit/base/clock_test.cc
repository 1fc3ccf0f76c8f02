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

TEST_CASE("a duration has at most three digits, and the unit that people would use") {
  CHECK(hv::format_duration(0s) == "0 s");
  CHECK(hv::format_duration(-1s) == "0 s");
  CHECK(hv::format_duration(12345ns) == "12.3 us");
  CHECK(hv::format_duration(1500us) == "1.5 ms");
  CHECK(hv::format_duration(99400us) == "99.4 ms");
  CHECK(hv::format_duration(99999us) == "0.1 s");
  CHECK(hv::format_duration(500ms) == "0.5 s");
  CHECK(hv::format_duration(1254ms) == "1.25 s");
  CHECK(hv::format_duration(12345ms) == "12.3 s");
  CHECK(hv::format_duration(30s) == "30 s");
  CHECK(hv::format_duration(103600ms) == "104 s");
  CHECK(hv::format_duration(119400ms) == "119 s");
  CHECK(hv::format_duration(119600ms) == "2 min");
  CHECK(hv::format_duration(125s) == "2 min 5 s");
  CHECK(hv::format_duration(599600ms) == "10 min");
  CHECK(hv::format_duration(750s) == "12.5 min");
  CHECK(hv::format_duration(30min) == "30 min");
  CHECK(hv::format_duration(119min) == "119 min");
  CHECK(hv::format_duration(125min) == "2 h 5 min");
  CHECK(hv::format_duration(3h) == "3 h");
  CHECK(hv::format_duration(47h) == "47 h");
  CHECK(hv::format_duration(52h) == "2 d 4 h");
  CHECK(hv::format_duration(1000000s) == "11.6 d");
  CHECK(hv::format_duration(hv::Seconds(1e9)) == "11574 d");
}
