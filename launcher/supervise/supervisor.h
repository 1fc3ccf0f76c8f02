// The supervisor: runs a job from its JobSpec to its exit code, and leaves nothing behind.
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

// Blocks until the job has ended; returns hvrun's exit code. Errors have been told on stderr.
// A writer that is blocked for good may be left behind in a thread: leave by _exit afterwards.
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment);

// The same with other edges than the real ones, for tests.
struct SupervisedParts {
  std::unique_ptr<Spawner> spawner;
  OutputOptions output;
  WayCheck check_way{};
};
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  SupervisedParts parts);

// What a launch would meet, up to its ranks' start; then everything is gone again. Throws Error for
// what is wrong with this machine.
struct CheckOutcome {
  CheckInput input;
  int exit_code = 0;  // not 0: somebody ended it before its time, and there is no input
};
CheckOutcome check_hosts(const JobSpec& spec, const HostList& list, const Environment& environment);

}  // namespace hv::launcher
