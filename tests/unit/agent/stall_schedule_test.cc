// Tests of launcher/agent/rendezvous/stall_schedule.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/stall_schedule.h"

#include <doctest/doctest.h>

#include <vector>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart = TimePoint() + 1h;

// The reports that are due by then, in seconds; the end of the job is negative.
std::vector<int> reported_by(StallSchedule* schedule, TimePoint time) {
  std::vector<int> reports;
  while (schedule->due() && *schedule->due() <= time) {
    const wire::FenceStalled stall = schedule->next_report();
    reports.push_back(static_cast<int>(stall.waited_s) * (stall.is_too_long ? -1 : 1));
  }
  return reports;
}

}  // namespace

TEST_CASE("a wait is reported at its limit, at twice, four times that, and once as too long") {
  StallSchedule schedule({60s, 180s});
  schedule.note_wait(true, kStart);
  CHECK(schedule.due() == kStart + 60s);
  CHECK(reported_by(&schedule, kStart + 130s) == std::vector{60, 120});
  CHECK(schedule.due() == kStart + 180s);
  CHECK(reported_by(&schedule, kStart + 500s) == std::vector{-180, 240, 480});
}

TEST_CASE("reports that are late are still made, the end of a wait among them") {
  StallSchedule both({60s, 90s}), end_only({0s, 90s});
  both.note_wait(true, kStart);
  end_only.note_wait(true, kStart);
  CHECK(reported_by(&both, kStart + 1000s) == std::vector{60, -90, 120, 240, 480, 960});
  CHECK(reported_by(&end_only, kStart + 1000s) == std::vector{-90});
  CHECK_FALSE(end_only.due());
}

TEST_CASE("a stop does not count towards a wait, and the time before it does") {
  StallSchedule schedule({60s, 100s});
  schedule.note_wait(true, kStart);
  schedule.note_wait(false, kStart + 50s);
  CHECK_FALSE(schedule.due());
  schedule.note_wait(false, kStart + 500s);
  schedule.note_wait(true, kStart + 1000s);
  schedule.note_wait(true, kStart + 1005s);
  CHECK(schedule.due() == kStart + 1010s);
  CHECK(schedule.waited(kStart + 1005s) == 55s);
  CHECK(reported_by(&schedule, kStart + 1050s) == std::vector{60, -100});
}

TEST_CASE("a wait that ends leaves nothing to the next") {
  StallSchedule schedule({60s, 70s});
  schedule.note_wait(true, kStart);
  CHECK(reported_by(&schedule, kStart + 75s) == std::vector{60, -70});
  schedule.end_wait();
  CHECK_FALSE(schedule.due());
  CHECK(schedule.waited(kStart + 90s) == 0s);
  schedule.note_wait(true, kStart + 100s);
  CHECK(reported_by(&schedule, kStart + 170s) == std::vector{60, -70});
}

TEST_CASE("without limits nothing is reported") {
  StallSchedule schedule({});
  schedule.note_wait(true, kStart);
  CHECK_FALSE(schedule.due());
}
