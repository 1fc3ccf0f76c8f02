// SPDX-License-Identifier: Apache-2.0
#include "src/base/clock.h"

#include <algorithm>
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

std::string seconds_text(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g s", std::chrono::duration<double>(duration).count());
  return text;
}

std::string waited_text(Duration duration) {
  using std::chrono::milliseconds;
  const auto exact = std::chrono::duration_cast<milliseconds>(duration);
  const milliseconds step =
      exact < std::chrono::seconds(10) ? milliseconds(100) : milliseconds(1000);
  return seconds_text(exact / step * step);
}

}  // namespace hv
