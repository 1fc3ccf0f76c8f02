// Tests of StopReason (launcher/supervise/job.h).
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <csignal>

#include "launcher/supervise/job.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

TEST_CASE("SIGTERM right after SIGTERM is the same request: Slurm sends two at a time limit") {
  const StopReason stop{.signal = SIGTERM, .at = hv::TimePoint(10s)};
  CHECK(stop.is_repeated_by(SIGTERM, hv::TimePoint(10s)));
  CHECK(stop.is_repeated_by(SIGTERM, hv::TimePoint(10900ms)));
  CHECK_FALSE(stop.is_repeated_by(SIGTERM, hv::TimePoint(11s)));
}

TEST_CASE("any other second signal is a request of its own") {
  const hv::TimePoint at(10s);
  CHECK_FALSE(StopReason{.signal = SIGTERM, .at = at}.is_repeated_by(SIGINT, at));
  CHECK_FALSE(StopReason{.signal = SIGINT, .at = at}.is_repeated_by(SIGINT, at));
  CHECK_FALSE(StopReason{.signal = SIGINT, .at = at}.is_repeated_by(SIGTERM, at));
  const StopReason limit{.kind = StopReason::Kind::kTimeout, .signal = SIGTERM, .at = at};
  CHECK_FALSE(limit.is_repeated_by(SIGTERM, at));
}
