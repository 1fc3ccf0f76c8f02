// Tests of time limits and of --signal.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_time.h"

#include <doctest/doctest.h>

#include "launcher/script/job_request.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

TEST_CASE("a time limit is units, a clock, or days and a clock") {
  const std::pair<const char*, std::chrono::seconds> cases[] = {
      {"2h", 2h},          {"90m", 90min},          {"45s", 45s},
      {"1h30m", 90min},    {"1d12h", 36h},          {"1d", 24h},
      {"02:00:00", 2h},    {"100:00:00", 100h},     {"0:00:01", 1s},
      {"1-12:00:00", 36h}, {"366-00:00:00", 8784h}, {"366d", 8784h},
  };
  for (const auto& [text, time] : cases) {
    CAPTURE(text);
    CHECK(parse_job_time(text) == time);
  }
}

TEST_CASE("what schedulers read differently, nothing and too much are no time limit") {
  for (const char* text : {"",
                           "0",
                           "30",
                           "02:00",
                           "0h",
                           "0:00:00",
                           "1:60:00",
                           "1:00:60",
                           "1-24:00:00",
                           "1-12",
                           "-1h",
                           "+1h",
                           "1.5h",
                           "1h1h",
                           "1m1h",
                           "h",
                           "1w",
                           "1h ",
                           " 1h",
                           "1:2:3:4",
                           "1::2",
                           "-:1:1",
                           "367d",
                           "8785:00:00",
                           "366-00:00:01",
                           "99999999999999999999h",
                           "9223372036854775807d"}) {
    CAPTURE(text);
    CHECK(!parse_job_time(text));
  }
}

TEST_CASE("a time limit is written as schedulers want it") {
  CHECK(format_job_time(2h) == "02:00:00");
  CHECK(format_job_time(100h + 5min + 9s) == "100:05:09");
  CHECK(format_hours_and_minutes(90min) == "01:30");
  CHECK(format_hours_and_minutes(61s) == "00:02");
}

TEST_CASE("a signal is one that hvrun hands to the ranks and a time before the end") {
  for (const char* text : {"USR1@120", "SIGUSR1@120", "USR1@2m", "USR1@120s"}) {
    CAPTURE(text);
    const auto signal = parse_early_signal(text);
    REQUIRE(signal);
    CHECK(signal->name == "USR1");
    CHECK(signal->before == 120s);
  }
  CHECK(parse_early_signal("USR2@1")->name == "USR2");
  for (const char* text : {"", "USR1", "USR1@", "@120", "TERM@120", "HUP@1", "usr1@1", "USR1@0",
                           "USR1@-1", "B:USR1@1", "USR1@1 ", "10@120"}) {
    CAPTURE(text);
    CHECK(!parse_early_signal(text));
  }
}
