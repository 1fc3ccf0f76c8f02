// What stands before a line.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/label.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>
#include <string>

using hv::launcher::LabelMaker;

namespace {

// This process's time zone while it lives.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) { set(zone); }
  ~TimeZone() { set(nullptr); }

 private:
  static void set(const char* zone) {
    zone ? ::setenv("TZ", zone, 1) : ::unsetenv("TZ");
    ::tzset();
  }
};

}  // namespace

TEST_CASE("a label is the rank in brackets") {
  LabelMaker labels({true, false, false});
  CHECK(labels.label(0, 5) == "[0] ");
  CHECK(labels.label(1234, 6) == "[1234] ");
  CHECK(labels.label(0, 7) == "[0] ");
}

TEST_CASE("a label names the host, too, where it is known, within the colour") {
  LabelMaker labels(
      {true, false, true, std::make_shared<const std::vector<std::string>>(2, "node7")});
  CHECK(labels.label(1, 0) == "\x1b[32m[1 node7]\x1b[0m ");
  CHECK(labels.label(2, 0) == "\x1b[33m[2]\x1b[0m ");  // no name is known
}

TEST_CASE("a time stamp is local with its offset and microseconds, after the label") {
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  LabelMaker labels({true, true, false});
  CHECK(labels.label(2, 1'700'000'000'123'456'789) == "[2] 2023-11-14T23:13:20.123456+01:00 ");
  CHECK(labels.label(2, 1'690'000'000'000'000'000) == "[2] 2023-07-22T06:26:40.000000+02:00 ");
}

TEST_CASE("a time zone may be behind UTC, and differ from it by half an hour") {
  const TimeZone zone("NST3:30");
  LabelMaker labels({false, true, false});
  CHECK(labels.label(2, 1'700'000'000'000'000'000) == "2023-11-14T18:43:20.000000-03:30 ");
}

TEST_CASE("microseconds are cut, not rounded") {
  const TimeZone zone("UTC0");
  LabelMaker labels({true, true, false});
  CHECK(labels.label(2, 1'700'000'000'123'456'789) == "[2] 2023-11-14T22:13:20.123456+00:00 ");
  CHECK(labels.label(2, 1'700'000'000'999'999'999) == "[2] 2023-11-14T22:13:20.999999+00:00 ");
  CHECK(labels.label(2, 1'700'000'001'000'000'000) == "[2] 2023-11-14T22:13:21.000000+00:00 ");
}

TEST_CASE("a clock before 1970 still gives a valid time") {
  const TimeZone zone("UTC0");
  LabelMaker labels({false, true, false});
  CHECK(labels.label(0, -1'000) == "1969-12-31T23:59:59.999999+00:00 ");
  CHECK(labels.label(0, -1'000'000'000) == "1969-12-31T23:59:59.000000+00:00 ");
}

TEST_CASE("the time stands alone without label, and nothing stands there without both") {
  const TimeZone zone("UTC0");
  LabelMaker times({false, true, false});
  CHECK(times.label(7, 0) == "1970-01-01T00:00:00.000000+00:00 ");
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
