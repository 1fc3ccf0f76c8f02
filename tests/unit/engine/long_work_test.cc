// When a device, or the preparation of a backend, is said to take long, and when it ends the job.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/long_work.h"

#include <doctest/doctest.h>

#include "tests/fakes/fake_accelerator.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr TimePoint kLongWorkNow{std::chrono::hours(1)};
constexpr std::chrono::seconds kLimit{10}, kEnd{60};

// Says of each moment what it is told of that.
struct ToldAccelerator : FakeAccelerator {
  Status poll(const Moment& moment) override {
    return &moment == passed ? Status::success() : work;
  }
  const Moment* passed = nullptr;
};

}  // namespace

TEST_CASE("a device's work ends the job when it has taken too long, from the first look at it") {
  LongWork work(kLimit, kEnd);
  const auto device = std::make_shared<FakeAccelerator>();
  CHECK(work.look("this", kLongWorkNow).ok());
  work.give("what the GPU does for 'w'", device, std::make_shared<const Moment>());
  CHECK(work.look("this", kLongWorkNow).code == StatusCode::kInProgress);
  CHECK(work.look("this", kLongWorkNow + kEnd - kLimit).code == StatusCode::kInProgress);
  const Status late = work.look("this", kLongWorkNow + kEnd);
  CHECK(late.code == StatusCode::kStalled);
  CHECK(late.message ==
        "what the GPU does for 'w' has gone on for 60 s. That ends the job: "
        "HVRUN_STALL_SHUTDOWN_SECONDS is 60 s; try: this");
  device->work = Status::success();
  CHECK(work.look("this", kLongWorkNow + kEnd).ok());
}

TEST_CASE("what was given meanwhile is watched after the first, with a time of its own") {
  LongWork work(kLimit, kEnd);
  const auto device = std::make_shared<ToldAccelerator>();
  const auto first = std::make_shared<const Moment>();
  work.give("first", device, first);
  work.give("second", device, std::make_shared<const Moment>());
  work.give("third", device, std::make_shared<const Moment>());
  CHECK(work.look("this", kLongWorkNow).code == StatusCode::kInProgress);
  device->passed = first.get();
  CHECK(work.look("this", kLongWorkNow + kEnd).code == StatusCode::kInProgress);
  const Status late = work.look("this", kLongWorkNow + 2 * kEnd);
  CHECK(late.code == StatusCode::kStalled);
  CHECK(late.message.find("third has gone on for 60 s") == 0);
}

TEST_CASE("a device's error is told at once, and a limit of zero is none") {
  LongWork work(Duration::zero(), Duration::zero());
  const auto device = std::make_shared<FakeAccelerator>();
  work.give("w", device, std::make_shared<const Moment>());
  CHECK(work.look("this", kLongWorkNow).code == StatusCode::kInProgress);
  CHECK(work.look("this", kLongWorkNow + std::chrono::hours(1000)).code == StatusCode::kInProgress);
  device->work = {StatusCode::kSystem, "an illegal address"};
  CHECK(work.look("this", kLongWorkNow).message == "an illegal address");
}

TEST_CASE("a preparation that is over is not told of any more") {
  LongWork work(kLimit, kEnd);
  work.begin_preparation("getting ready for w");
  CHECK(work.look("this", kLongWorkNow).code == StatusCode::kInProgress);
  CHECK(work.look("this", kLongWorkNow + kEnd).code == StatusCode::kStalled);
  work.end_preparation();
  CHECK(work.look("this", kLongWorkNow + 2 * kEnd).ok());
}
