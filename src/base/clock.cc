// SPDX-License-Identifier: Apache-2.0
#include "src/base/clock.h"

#include <cstdio>

namespace hv {

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double seconds_since(TimePoint start) {
  return std::chrono::duration<double>(now() - start).count();
}

std::string seconds_text(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g s", std::chrono::duration<double>(duration).count());
  return text;
}

}  // namespace hv
