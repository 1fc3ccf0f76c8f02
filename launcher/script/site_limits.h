// Which limits of a site does a job break, and what could be asked for instead?
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/script/script_plan.h"

namespace hv::launcher {

// Throws one Error(kUsage) that names all of them.
void check_limits(const JobRequest& request, const Site& site, const ScriptPlan& plan);

}  // namespace hv::launcher
