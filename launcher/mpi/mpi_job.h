// hvrun --mpi: the job is handed to an MPI's own mpirun, and told as any job of hvrun's is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/allocation/host_list.h"
#include "launcher/mpi/mpi_command.h"
#include "launcher/plan/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct MpiLaunch {
  Mpirun mpirun;
  MpiEnvironment environment;
  MpiCommand command;
  std::string tag;
};

// Looks for mpirun. agent_file: hvrun-agent. Throws Error.
MpiLaunch plan_mpi_launch(const JobSpec& spec, const HostList& list, const LaunchPlan& plan,
                          const Environment& environment, const std::string& agent_file);

// Runs it to its end; hvrun's exit code. In a process without threads. Throws Error where it does
// not start.
int run_mpi_job(const MpiLaunch& launch, const JobSpec& spec, const Environment& environment);

}  // namespace hv::launcher
