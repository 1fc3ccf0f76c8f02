// SPDX-License-Identifier: Apache-2.0
#include "src/base/clock.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hv {

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

timespec time_left(TimePoint deadline) {
  using std::chrono::duration_cast, std::chrono::hours, std::chrono::nanoseconds,
      std::chrono::seconds;
  const auto left = duration_cast<nanoseconds>(
      std::clamp<Duration>(deadline - now(), Duration::zero(), hours(1)));
  const auto whole = duration_cast<seconds>(left);
  return {static_cast<time_t>(whole.count()), static_cast<long>((left - whole).count())};
}

double seconds_since(TimePoint start) {
  return std::chrono::duration<double>(now() - start).count();
}

std::string format_duration(Seconds duration) {
  struct Unit {
    double seconds;
    const char* name;
    double below;  // the unit is used for shorter durations, seconds
  };
  // Below what "%.3g" would round up to the limit.
  static constexpr Unit kPlain[] = {{1e-6, "us", 0.0000995}, {1e-3, "ms", 0.0995}, {1, "s", 119.5}};
  static constexpr Unit kClock[] = {
      {60, "min", 119.5 * 60}, {3600, "h", 47.95 * 3600}, {86400, "d", HUGE_VAL}};
  const double seconds = std::max(0.0, duration.count());
  const auto digits = [seconds](const Unit& unit, double least = 0) {
    char text[48];
    const double count = std::max(least, seconds / unit.seconds);
    std::snprintf(text, sizeof text, count < 999.5 ? "%.3g %s" : "%.0f %s", count, unit.name);
    return std::string(text);
  };
  if (seconds == 0) return "0 s";
  for (const Unit& unit : kPlain)
    if (seconds < unit.below) return digits(unit);
  const Unit* smaller = &kPlain[2];
  for (const Unit& unit : kClock) {
    if (seconds >= unit.below) {
      smaller = &unit;
      continue;
    }
    const auto per_unit = std::llround(unit.seconds / smaller->seconds);
    const auto count = std::llround(seconds / smaller->seconds);
    if (count >= 10 * per_unit) return digits(unit, 10);
    const std::string whole = std::to_string(count / per_unit) + " " + unit.name;
    const auto rest = count % per_unit;
    return rest == 0 ? whole : whole + " " + std::to_string(rest) + " " + smaller->name;
  }
  return digits(kClock[2]);
}

}  // namespace hv
