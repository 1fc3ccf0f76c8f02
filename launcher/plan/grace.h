// The grace: the time that ranks have between SIGTERM and SIGKILL. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "src/base/clock.h"

namespace hv::launcher {

constexpr Duration kDefaultGrace = std::chrono::seconds(3);
// Once a host is lost, nothing may run 5 s later, whatever --grace is.
constexpr Duration kMostGraceAfterLoss = std::chrono::seconds(2);

enum class EndedBy {
  kJob,        // a rank's failure, the user, a limit of hvrun's
  kScheduler,  // its SIGTERM to hvrun or an agent: ranks save their state then
  kLoss,       // a host is lost, or its agent cannot do its part
};

// stated: by --grace, which always counts. time_to_end: between the scheduler's SIGTERM and its
// SIGKILL; hvrun keeps 1 s of it to end in order, or half of it where it is shorter than 2 s.
Duration grace_of(EndedBy by, std::optional<Duration> stated, std::optional<Duration> time_to_end);

}  // namespace hv::launcher
