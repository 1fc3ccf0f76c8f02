// Tests of src/base/check.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/check.h"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/unit/base/dying.h"

TEST_CASE("HV_CHECK lets a condition that holds pass and evaluates it once") {
  int evaluated = 0;
  HV_CHECK(++evaluated == 1, "counts");
  CHECK(evaluated == 1);
}

TEST_CASE("HV_CHECK makes the context only for a condition that does not hold") {
  bool made = false;
  const auto context = [&made] {
    made = true;
    return std::string("rank 3");
  };
  HV_CHECK(true, context());
  CHECK_FALSE(made);
}

TEST_CASE("HV_CHECK ends the process with place, condition and context") {
  const int line = __LINE__ + 1;
  const hv::Death death = hv::death_of([] { HV_CHECK(1 + 1 == 3, "rank 3 of 4"); });
  CHECK(death.signal == SIGABRT);
  CHECK(death.last_words.find("check_test.cc:" + std::to_string(line)) != std::string::npos);
  CHECK(death.last_words.find("1 + 1 == 3 does not hold (rank 3 of 4)") != std::string::npos);
  CHECK(death.last_words.back() == '\n');
}

TEST_CASE("HV_CHECK is one statement, so that an else behind it belongs to the if before it") {
  bool reached = false;
  if (reached)
    HV_CHECK(false, "never");
  else
    reached = true;
  CHECK(reached);
}
