// From a plan to the command line of an MPI's own mpirun. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Variables are named there, and mpirun has their values in its own environment: anybody may read a
// command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/mpi/mpirun.h"
#include "launcher/plan/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/environment.h"

namespace hv::launcher {

// Throws Error(kUsage) for what the command line asks of hvrun's own agents, which are not there.
void refuse_what_mpirun_lacks(const JobSpec& spec, const HostList& list);

// A line for each wish that is nobody's here, and for each host whose slots were guessed.
std::vector<std::string> vain_wishes(const JobSpec& spec, const LaunchPlan& plan);

struct MpiEnvironment {
  Environment own;                      // of mpirun, and of the ranks beside it
  std::vector<std::string> for_others;  // names that ranks on other hosts get, too
};
// Throws Error(kUsage) for an -x that is malformed.
// master: MASTER_ADDR and MASTER_PORT.
MpiEnvironment mpi_environment(const JobSpec& spec, const Environment& environment,
                               const std::pair<std::string, int>& master);
// A host's name or address that mpirun gets, too, and --master-port or one of HVRUN_PORT_RANGE, at
// random: no port is looked at or held.
std::pair<std::string, int> choose_master(const JobSpec& spec, const HostList& list,
                                          const LaunchPlan& plan, const Environment& environment);

// As mpirun gets it: the address that was written for it, else its name.
std::string address_of(const PlannedHost& host, const HostList& list);

struct MpiCommand {
  std::vector<std::string> argv;
  std::vector<std::string> variables;  // NAME=VALUE, for mpirun itself
};

// tag: of Hydra's pieces of output; random. Throws Error(kUsage) for a placement that it cannot be
// told.
MpiCommand make_mpi_command(const Mpirun& mpirun, const JobSpec& spec, const HostList& list,
                            const LaunchPlan& plan, const std::vector<std::string>& for_others,
                            const std::string& tag);

// Ranks are bound by hvrun-agent on their hosts, and mpirun is told to bind nothing.
bool binds_by_itself(const Mpirun& mpirun, const JobSpec& spec);

// As one would type it.
std::string as_shell_line(const MpiCommand& command);

// A rank that a signal has ended: Hydra tells by its exit code the signal's number at best, and in
// words. words: its last ones.
int exit_code_of_mpirun(const Mpirun& mpirun, int shell_code, const std::string& words);

}  // namespace hv::launcher
