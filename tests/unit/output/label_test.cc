// What stands before a line.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/label.h"

#include <doctest/doctest.h>

using hv::launcher::LabelMaker;

TEST_CASE("a label is the rank in brackets") {
  LabelMaker labels({true, false, false});
  CHECK(labels.label(0, 5) == "[0] ");
  CHECK(labels.label(1234, 6) == "[1234] ");
  CHECK(labels.label(0, 7) == "[0] ");
}

TEST_CASE("a time stamp is UTC with microseconds, after the label") {
  LabelMaker labels({true, true, false});
  CHECK(labels.label(2, 1'700'000'000'123'456'789) == "[2] 2023-11-14T22:13:20.123456Z ");
  CHECK(labels.label(2, 1'700'000'000'999'999'999) == "[2] 2023-11-14T22:13:20.999999Z ");
  CHECK(labels.label(2, 1'700'000'001'000'000'000) == "[2] 2023-11-14T22:13:21.000000Z ");
}

TEST_CASE("a clock before 1970 still gives a valid time") {
  LabelMaker labels({false, true, false});
  CHECK(labels.label(0, -1'000) == "1969-12-31T23:59:59.999999Z ");
  CHECK(labels.label(0, -1'000'000'000) == "1969-12-31T23:59:59.000000Z ");
}

TEST_CASE("the time stands alone without label, and nothing stands there without both") {
  LabelMaker times({false, true, false});
  CHECK(times.label(7, 0) == "1970-01-01T00:00:00.000000Z ");
  CHECK_FALSE(times.is_empty());
  LabelMaker nothing({false, false, false});
  CHECK(nothing.label(7, 0) == "");
  CHECK(nothing.is_empty());
}

TEST_CASE("colour encloses the brackets only, and neighbours differ") {
  LabelMaker labels({true, false, true});
  const std::string zero(labels.label(0, 0));
  const std::string one(labels.label(1, 0));
  CHECK(zero == "\x1b[36m[0]\x1b[0m ");
  CHECK(one.substr(0, 5) != zero.substr(0, 5));
}
