// What hvrun says where the ranks do not fit what a scheduler has given the job. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/launch_plan.h"

namespace hv::launcher {

// How to get slots for so many ranks from that scheduler: "request more tasks (sbatch --ntasks=8)".
// scheduler: HostList::scheduler, of the hosts' slots.
std::string request_more_slots(const std::string& scheduler, long ranks, std::size_t hosts);

// Adds a warning where the scheduler has given the job more GPUs than the ranks use.
void warn_of_idle_gpus(const JobSpec& spec, const HostList& list, LaunchPlan* plan);

}  // namespace hv::launcher
