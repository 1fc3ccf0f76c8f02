// CommonEnvironment: the part of the ranks' environment that does not depend on the rank or its
// host: hvrun's own, less what describes a host or a login, plus -x.
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
  std::set<std::string, std::less<>> exported{};  // names in `variables` that -x gave
  // Names and PREFIX_* patterns of the variables that each host takes from its login.
  std::vector<std::string> host_variables{};
  std::vector<RankEnvironment> program_variables{};  // -x of each program; beats `variables`
};

// own: hvrun's environment. Throws Error(kUsage) for an -x NAME that it lacks.
CommonEnvironment common_environment(const JobSpec& spec, const Environment& own);

// A warning for each pattern of -x that matches no variable of hvrun's environment.
std::vector<std::string> unmatched_exports(const JobSpec& spec, const Environment& own);

// Whether hvrun runs in a job of Slurm, PBS, LSF or SGE.
bool is_in_scheduler_job(const Environment& own);

// A warning where variables such as TMPDIR are set and ranks on other hosts do not have them. For
// jobs whose hosts do not inherit hvrun's environment.
std::vector<std::string> variables_left_behind(const JobSpec& spec, const Environment& own);

// A warning where variables of the contract are set, which hvrun itself sets for ranks. None inside
// a rank of hvrun: an outer hvrun has set them. MASTER_PORT counts as --master-port.
std::vector<std::string> overridden_variables(const JobSpec& spec, const Environment& own);

// Throws Error(kUsage) for a malformed knob of the ranks, so that hvrun reports it once, before the
// start, and not every rank.
void check_knobs_of_ranks(const CommonEnvironment& environment);

}  // namespace hv::launcher
