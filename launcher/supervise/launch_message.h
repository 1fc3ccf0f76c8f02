// The Launch message for one host: program, environment, and the contract of each of its ranks.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/plan/common_environment.h"
#include "launcher/supervise/job.h"
#include "src/contract/contract.h"
#include "src/wire/messages.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

// The programs as messages name them, to start and to check them.
std::vector<wire::Program> programs_of(const JobSpec& spec, const CommonEnvironment& environment);

// environment with what depends on which ranks the epoch has and where: Slurm's variables. Throws
// Error(kUsage).
CommonEnvironment environment_of_epoch(const Job& job, CommonEnvironment environment);

// host: a member of the epoch that is set up. common: host_index is filled in here. environment:
// environment_of_epoch()'s. defaults: variables of its ranks that the placement, hvrun's
// environment and -x override. Throws Error(kUsage) when it would be larger than an agent takes
// (wire::kMaxAgentPayload).
wire::Launch launch_message(const Job& job, const Host& host, const ContractAddresses& common,
                            const CommonEnvironment& environment, const wire::Pairs& defaults = {});

// The same for every host: the hosts of the job, and the host of each rank.
wire::MpiWorld mpi_world(const Job& job, std::string space);

}  // namespace hv::launcher
