// Step times on their way from the program to the job's store.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/step_report.h"

#include <doctest/doctest.h>

#include <thread>

#include "src/rendezvous/inproc_store.h"

namespace hv::runtime {
namespace {

wire::StepTimes steps(std::uint64_t count) { return {count, 10 * count, count, count, count}; }

}  // namespace

TEST_CASE("step times are sent at most once a second, and the newest are") {
  InprocStoreHub hub(1);
  const auto store = hub.store(0);
  StepReport report;
  const TimePoint start = now();
  CHECK_FALSE(report.has_news());
  report.note(steps(1));
  REQUIRE(report.has_news());
  report.send_if_due(*store, start);
  CHECK_FALSE(report.has_news());
  for (const std::uint64_t count : {2u, 3u}) {
    report.note(steps(count));
    report.send_if_due(*store, start + StepReport::kInterval - Duration(1));
  }
  CHECK(report.has_news());
  CHECK(hub.reported_step_times().size() == 1);
  report.send_if_due(*store, start + StepReport::kInterval);
  const auto told = hub.reported_step_times();
  REQUIRE(told.size() == 2);
  CHECK(told[0].second.steps == 1);
  CHECK(told[1].second.steps == 3);
}

TEST_CASE("step times that shrink are refused with the last ones, which stay") {
  StepReport report;
  CHECK_FALSE(report.note(steps(5)));
  for (std::uint64_t wire::StepTimes::*part :
       {&wire::StepTimes::steps, &wire::StepTimes::nanoseconds, &wire::StepTimes::data_nanoseconds,
        &wire::StepTimes::exchange_nanoseconds, &wire::StepTimes::data_waits}) {
    wire::StepTimes less = steps(6);
    less.*part = 4;
    const auto last = report.note(less);
    REQUIRE(last);
    CHECK(last->steps == 5);
  }
  CHECK_FALSE(report.note(steps(5)));
}

TEST_CASE("the last step times are sent whenever they come, and what was sent is not sent again") {
  InprocStoreHub hub(1);
  const auto store = hub.store(0);
  StepReport report;
  report.send_last(*store);
  CHECK(hub.reported_step_times().empty());
  report.note(steps(1));
  report.send_if_due(*store, now());
  report.note(steps(2));
  report.send_last(*store);
  report.send_last(*store);
  const auto told = hub.reported_step_times();
  REQUIRE(told.size() == 2);
  CHECK(told[1].second.steps == 2);
}

TEST_CASE(
    "step times that are noted while others are sent are whole, and none is lost at the end") {
  InprocStoreHub hub(1);
  const auto store = hub.store(0);
  StepReport report;
  constexpr std::uint64_t kLast = 20000;
  std::thread program([&report] {
    for (std::uint64_t count = 1; count <= kLast; ++count) report.note(steps(count));
  });
  TimePoint time = now();
  for (int i = 0; i < 2000; ++i) {
    time += StepReport::kInterval;
    if (report.has_news()) report.send_if_due(*store, time);
  }
  program.join();
  report.send_last(*store);
  std::uint64_t before = 0;
  for (const auto& [rank, times] : hub.reported_step_times()) {
    CHECK(times.nanoseconds == 10 * times.steps);
    CHECK(times.steps >= before);
    before = times.steps;
  }
  CHECK(before == kLast);
}

}  // namespace hv::runtime
