// Tests of a host's start deadline.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/start_deadline.h"

#include <boost/asio/steady_timer.hpp>

#include "src/base/error.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;
using namespace std::chrono_literals;

namespace {

// The Error of throw_if_passed; none when it does not throw.
std::optional<Error> error_of(const StartDeadline& deadline) {
  try {
    deadline.throw_if_passed();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a deadline that passes breaks off the phase it falls into and names it") {
  asio::io_context io;
  StartDeadline deadline(io.get_executor(), 20ms);
  int broken_off = 0;
  const auto phase = deadline.enter("connect to host b", "look at b", [&] { ++broken_off; });
  CHECK_FALSE(error_of(deadline));
  io.run();
  CHECK(broken_off == 1);
  CHECK(deadline.passed());
  const auto error = error_of(deadline);
  REQUIRE(error);
  CHECK(error->kind() == ErrorKind::kTimeout);
  CHECK(std::string(error->what()) == "connect to host b: not done within 20 ms (--start-timeout)");
  CHECK(error->hint() == "look at b");
}

TEST_CASE("a phase that is over is not broken off, but still named as where the time went") {
  asio::io_context io;
  StartDeadline deadline(io.get_executor(), 20ms);
  int broken_off = 0;
  {
    const auto phase = deadline.enter("log in on b", "", [&] { ++broken_off; });
  }
  io.run();
  CHECK(broken_off == 0);
  REQUIRE(error_of(deadline));
  CHECK(contains(error_of(deadline)->what(), "log in on b"));
}

TEST_CASE("no phase begins once the deadline has passed") {
  asio::io_context io;
  StartDeadline deadline(io.get_executor(), 1ms);
  {
    const auto phase = deadline.enter("log in on b", "", [] {});
  }
  io.run();
  bool entered = false;
  try {
    const auto phase = deadline.enter("copy the agent to b", "", [] {});
    entered = true;
  } catch (const Error& error) {
    CHECK(contains(error.what(), "log in on b"));
  }
  CHECK_FALSE(entered);
}

TEST_CASE("a deadline that has gone with its scope calls nobody") {
  asio::io_context io;
  int broken_off = 0;
  {
    StartDeadline deadline(io.get_executor(), 1ms);
    const auto phase = deadline.enter("connect to b", "", [&] { ++broken_off; });
  }
  io.run();
  CHECK(broken_off == 0);
}
