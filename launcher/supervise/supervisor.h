// The supervisor: runs a job from its JobSpec to its exit code, and leaves no process behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "launcher/allocation/host_list.h"
#include "launcher/check/check_input.h"
#include "launcher/output/output_room.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/job_spec.h"
#include "launcher/spawn/spawner.h"
#include "launcher/supervise/report/job_recorder.h"
#include "src/base/environment.h"

namespace hv::launcher {

// Blocks until the job has ended, with its restarts; returns hvrun's exit code, that of the last
// attempt. Errors have been printed on stderr. A writer that stays blocked may be left behind in a
// thread: leave by _exit afterwards. environment: hvrun's own.
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  const CommonEnvironment& ranks);

// The same with other inputs and outputs, for tests. make_parts: called once for each attempt, with
// its spec.
struct SupervisedParts {
  std::unique_ptr<Spawner> spawner;
  OutputOptions output;
  WayCheck check_way{};
  RecordingOptions recording{};
};
using MakeParts = std::function<SupervisedParts(const JobSpec& spec)>;
int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  const MakeParts& make_parts);

// Does all of a launch but the start of ranks, checks the hosts, and leaves nothing behind. Throws
// Error for a failure of this machine.
struct CheckOutcome {
  CheckInput input;
  int exit_code = 0;  // not 0: the user ended it early, and there is no input
};
CheckOutcome check_hosts(const JobSpec& spec, const HostList& list, const Environment& environment,
                         CommonEnvironment ranks);

}  // namespace hv::launcher
