// What of its host each rank gets: GPUs, cores, network adapters, and the variables that tell
// programs so. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/core_binding.h"
#include "launcher/plan/launch_plan.h"

namespace hv::launcher {

// All hardware threads, sorted, of the cores that a rankfile names by socket. Sockets and their
// cores are counted from 0 in the order of their numbers, of those that may be used. Throws
// Error(kUsage) for one that the host does not have; rank and host: for the message.
std::vector<int> threads_of_sockets(const std::vector<SocketCores>& wanted,
                                    const std::vector<CoreFacts>& cores, int rank,
                                    const std::string& host);

// Completes the ranks of a plan whose hosts are chosen; what needs facts that are not there stays
// empty. Throws Error(kUsage) where a host lacks what was asked for.
void assign_resources(const JobSpec& spec, const HostList& list,
                      const std::vector<std::optional<HostFacts>>& facts, LaunchPlan* plan);

// "0-1 (GPU-5a1e..., GPU-77c0...)": the numbers of a rank's GPUs, and the UUIDs that are known.
std::string gpus_as_text(const PlannedRank& rank);

// A line for each rank: --report-bindings.
std::string bindings_as_text(const LaunchPlan& plan);

}  // namespace hv::launcher
