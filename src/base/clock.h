// The only source of time. Durations are std::chrono; wall-clock stamps are nanoseconds since 1970.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace hv {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;
using Duration = SteadyClock::duration;

inline TimePoint now() { return SteadyClock::now(); }
std::int64_t wall_clock_ns();
double seconds_since(TimePoint start);
// What is left until then, for a system call that sleeps: nothing once it has passed, at most an
// hour.
timespec time_left(TimePoint deadline);
// "30 s", "0.5 s".
std::string seconds_text(Duration duration);
// Of a wait: "1.5 s" below ten seconds, else whole ones; rounded down.
std::string waited_text(Duration duration);

}  // namespace hv
