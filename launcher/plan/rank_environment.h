// The environment that ranks get: hvrun's own, less what belongs to a host or a login, plus -x.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct CommonEnvironment {
  std::vector<std::string> entries;     // NAME=VALUE, for every rank
  std::vector<std::string> exported{};  // names among them that -x gave
  std::vector<std::string>
      host_variables{};  // names and PREFIX_* patterns that each host fills in from its login
  std::vector<std::vector<std::string>> of_programs{};  // -x of their own, by program
};

// "-x 'NOPE_*': no variable's name begins so": for each pattern that adds nothing.
std::vector<std::string> unmatched_exports(const JobSpec& spec, const Environment& own);

// own: hvrun's environment. Throws Error(kUsage) for an -x that is malformed or names the contract.
CommonEnvironment common_environment(const JobSpec& spec, const Environment& own);

// Throws Error(kUsage) for a knob that ranks would find malformed: told once and before the start,
// not by every rank.
void check_knobs_of_ranks(const JobSpec& spec, const Environment& own);

}  // namespace hv::launcher
