// How mpirun is told to reach the hosts: what hvrun's options and hostfiles say of SSH. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// mpirun has one way for all hosts, so that what differs from host to host is refused.
#pragma once

#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/job_spec.h"

namespace hv::launcher {

// No rank is on another machine.
bool are_all_here(const HostList& list);

// Each throws Error(kUsage).
std::vector<std::string> reach_of_openmpi(const JobSpec& spec, const HostList& list);
std::vector<std::string> reach_of_hydra(const JobSpec& spec, const HostList& list);
// NAME=VALUE.
std::vector<std::string> variables_for_hydra(const JobSpec& spec, const HostList& list);

}  // namespace hv::launcher
