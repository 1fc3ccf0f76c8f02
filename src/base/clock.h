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
using Seconds = std::chrono::duration<double>;
// For messages, with at most three digits: "12.3 ms", "0.5 s", "104 s", "2 min 5 s", "12.5 min",
// "3 h", "2 d 4 h".
std::string format_duration(Seconds duration);

}  // namespace hv
