// What of its host each rank gets: GPUs, cores, network adapters, and the variables that tell
// programs so. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/launch_plan.h"

namespace hv::launcher {

// Completes the ranks of a plan whose hosts are chosen; what needs facts that are not there stays
// empty. Throws Error(kUsage) where a host lacks what was asked for.
void assign_resources(const JobSpec& spec, const HostList& list,
                      const std::vector<std::optional<HostFacts>>& facts, LaunchPlan* plan);

// "0-1 (GPU-5a1e..., GPU-77c0...)": the numbers of a rank's GPUs, and the UUIDs that are known.
std::string gpus_as_text(const PlannedRank& rank);

// A line for each rank: --report-bindings.
std::string bindings_as_text(const LaunchPlan& plan);

}  // namespace hv::launcher
