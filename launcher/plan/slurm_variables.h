// What a program that reads Slurm's own variables (idr_torch, Lightning) finds in a rank: as if
// srun had started it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/contract/contract.h"

namespace hv::launcher {

using Variables = std::vector<std::pair<std::string, std::string>>;

// The same for all ranks. hosts: with ranks, in order.
Variables slurm_variables_of_job(int ranks, const std::vector<std::string>& hosts);
// host: its index among those.
Variables slurm_variables_of_rank(const RankIdentity& rank, int host);

}  // namespace hv::launcher
