// Tests of the time between SIGTERM and SIGKILL.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/grace.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

TEST_CASE("a scheduler's SIGTERM leaves ranks its own time, less a second to end in order") {
  CHECK(grace_of(EndedBy::kScheduler, std::nullopt, 30s) == 29s);
  CHECK(grace_of(EndedBy::kScheduler, std::nullopt, 1s) == 500ms);
  CHECK(grace_of(EndedBy::kScheduler, std::nullopt, 0s) == 0s);
  CHECK(grace_of(EndedBy::kScheduler, std::nullopt, std::nullopt) == 3s);
}

TEST_CASE("--grace counts whoever ends the job") {
  for (const EndedBy by : {EndedBy::kScheduler, EndedBy::kJob}) {
    CHECK(grace_of(by, 7s, 30s) == 7s);
    CHECK(grace_of(by, 60s, 30s) == 60s);
    CHECK(grace_of(by, 0s, std::nullopt) == 0s);
  }
}

TEST_CASE("without --grace a failure leaves the other ranks 3 s, in a scheduler's job, too") {
  CHECK(grace_of(EndedBy::kJob, std::nullopt, 30s) == 3s);
  CHECK(grace_of(EndedBy::kJob, std::nullopt, std::nullopt) == 3s);
}

TEST_CASE("once a host is lost ranks have 2 s at most") {
  CHECK(grace_of(EndedBy::kLoss, std::nullopt, 30s) == 2s);
  CHECK(grace_of(EndedBy::kLoss, 60s, std::nullopt) == 2s);
  CHECK(grace_of(EndedBy::kLoss, 1s, 30s) == 1s);
}
