// The supervisor: runs a job from its JobSpec to its exit code, and leaves no process behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "launcher/allocation/host_list.h"
#include "launcher/check/check_input.h"
#include "launcher/output/output_room.h"
#include "launcher/plan/job_spec.h"
#include "launcher/spawn/spawner.h"
#include "src/base/environment.h"

namespace hv::launcher {

// Blocks until the job has ended; returns hvrun's exit code. Errors have been printed on stderr. A
// writer that stays blocked may be left behind in a thread: leave by _exit afterwards.
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment);

// The same with other inputs and outputs, for tests.
struct SupervisedParts {
  std::unique_ptr<Spawner> spawner;
  OutputOptions output;
  WayCheck check_way{};
};
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  SupervisedParts parts);

// Checks what a launch would meet up to its ranks' start, and leaves nothing behind. Throws Error
// for what is wrong with this machine.
struct CheckOutcome {
  CheckInput input;
  int exit_code = 0;  // not 0: the user ended it early, and there is no input
};
CheckOutcome check_hosts(const JobSpec& spec, const HostList& list, const Environment& environment);

}  // namespace hv::launcher
