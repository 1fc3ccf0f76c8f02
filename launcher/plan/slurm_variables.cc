// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_variables.h"

#include "src/base/text.h"

namespace hv::launcher {

Variables slurm_variables_of_job(int ranks, const std::vector<std::string>& hosts) {
  const std::string size = std::to_string(ranks);
  return {{"SLURM_NTASKS", size},
          {"SLURM_NPROCS", size},
          {"SLURM_STEP_NUM_TASKS", size},
          {"SLURM_STEP_NUM_NODES", std::to_string(hosts.size())},
          {"SLURM_STEP_NODELIST", join(hosts, ",")}};
}

Variables slurm_variables_of_rank(const RankIdentity& rank, int host) {
  return {{"SLURM_PROCID", std::to_string(rank.rank)},
          {"SLURM_LOCALID", std::to_string(rank.local_rank)},
          {"SLURM_NODEID", std::to_string(host)}};
}

}  // namespace hv::launcher
