// The environment that the ranks of a job have in common: hvrun's own, less what describes a host
// or a login, plus -x.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"
#include "src/contract/rank_environment.h"

namespace hv::launcher {

struct CommonEnvironment {
  RankEnvironment variables;                      // of every rank
  std::set<std::string, std::less<>> exported{};  // the names among them that -x gave
  // Names and PREFIX_* patterns of the variables that each host takes from its login.
  std::vector<std::string> host_variables{};
  std::vector<RankEnvironment> of_programs{};  // -x of their own, by program
};

// own: hvrun's environment. Throws Error(kUsage) for an -x of a variable that is not set there.
CommonEnvironment common_environment(const JobSpec& spec, const Environment& own);

// "-x 'NOPE_*' adds nothing": for each pattern that matches no variable of hvrun's.
std::vector<std::string> unmatched_exports(const JobSpec& spec, const Environment& own);

// Throws Error(kUsage) for a knob that ranks would find malformed: reported once and before the
// start, not by every rank.
void check_knobs_of_ranks(const CommonEnvironment& environment);

}  // namespace hv::launcher
