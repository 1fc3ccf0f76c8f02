// PreparedJob: a job whose hosts and spawner are known, before any host is asked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/allocation/allocate.h"
#include "launcher/cli/command_line.h"
#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct PreparedJob {
  JobSpec spec;
  HostList hosts;
  Environment environment;  // hvrun's own, with the variables that options of horovodrun set
};

// Finds the hosts, chooses the spawner and prints warnings. Throws Error.
PreparedJob prepare_job(LaunchCommand command, Environment environment);

// hvrun check, and --dry-run of a program (check_command.cc): asks the hosts, prints the report and
// writes the pictures. Returns the exit code; throws Error.
int check_job(const PreparedJob& job);

}  // namespace hv::launcher
