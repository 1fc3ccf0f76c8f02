// The variables of Slurm that ranks get, for programs that read them (idr_torch, Lightning): as if
// srun had started the ranks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/plan/common_environment.h"
#include "src/contract/contract.h"

namespace hv::launcher {

struct HostRanks {
  std::string name;
  int ranks = 0;
};

// Makes Slurm's variables describe the ranks, which may be on part of the job's nodes and in
// another order, and keeps the job's own values under HVRUN_JOB_ names. Does nothing outside a
// Slurm job, and to what -x names for all ranks. hosts: those with ranks, in the order of their
// first rank. Throws Error(kUsage) for a malformed $SLURM_JOB_NODELIST.
void set_slurm_variables(const std::vector<HostRanks>& hosts, CommonEnvironment* environment);

// host: its index among those.
std::vector<std::pair<std::string, std::string>> slurm_variables_of_rank(const RankIdentity& rank,
                                                                         int host);

// HVRUN_JOB_NODELIST and its like.
const std::vector<std::string>& names_of_job_values();

}  // namespace hv::launcher
