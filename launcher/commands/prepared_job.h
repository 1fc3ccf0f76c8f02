// PreparedJob: a job whose hosts, spawner and ranks' environment are known, before any host is
// asked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/allocation/allocate.h"
#include "launcher/cli/command_line.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct PreparedJob {
  JobSpec spec;
  HostList hosts;
  Environment environment;  // hvrun's own, with the variables that options of horovodrun set
  CommonEnvironment ranks;
};

// Finds the hosts, chooses the spawner, composes the ranks' environment and prints warnings. Throws
// Error.
PreparedJob prepare_job(LaunchCommand command, Environment environment);

// hvrun check, and --dry-run of a program (check_command.cc): checks the hosts, prints the report
// and writes the pictures. Returns the exit code; throws Error.
int check_job(const PreparedJob& job);

}  // namespace hv::launcher
