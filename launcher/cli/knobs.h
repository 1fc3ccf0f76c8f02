// Knobs of hvrun itself: what a site sets once instead of on every command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"
#include "src/base/knob.h"

namespace hv::launcher {

// A shorter time cannot tell a busy host from a lost one.
constexpr double kLeastLostAfterSeconds = 0.5;

// An option on the command line beats its knob.
const std::vector<Knob>& launcher_knobs();

// Warnings about HVRUN_ variables that set nothing, and HOROVOD_ variables that resemble one that
// does.
std::vector<std::string> ignored_variables(const Environment& environment);
// The same, with the variables that -x sets for ranks.
std::vector<std::string> ignored_variables(const JobSpec& spec, const Environment& environment);

}  // namespace hv::launcher
