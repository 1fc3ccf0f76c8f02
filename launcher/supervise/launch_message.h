// The Launch message for one host: program, environment, and the contract of each of its ranks.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "launcher/plan/rank_environment.h"
#include "launcher/supervise/job.h"
#include "src/contract/contract.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// host: index into job.hosts, which have said hello and are set up. common: host_index is filled in
// here. Throws Error(kUsage) when it would be larger than an agent takes (wire::kMaxAgentPayload).
wire::Launch launch_message(const Job& job, std::size_t host, const ContractAddresses& common,
                            const CommonEnvironment& environment);

}  // namespace hv::launcher
