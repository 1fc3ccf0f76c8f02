// Restarts: whether a job that has ended starts again (--restarts), and how long hvrun waits before
// that. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// A failed rank and a lost host start the job again. The end that the user asked for does not: a
// signal to hvrun, --timeout, closed output. Nor does what would fail again in the same way: a
// usage error (exit code 2), output or a record that cannot be written, a first start that fails. A
// start that fails later may be a lost host that still boots, so it uses one of the restarts.
#pragma once

#include <optional>
#include <string>

#include "launcher/plan/job_spec.h"
#include "launcher/record/job_record.h"
#include "src/base/clock.h"

namespace hv::launcher {

struct EndedAttempt {
  std::string state{};  // JobEnd's
  int exit_code = 0;
  int restarts = 0;          // before this attempt
  bool was_stopped = false;  // Job::stop(), also one that came after the failure
  std::string reason{};      // a signal to hvrun or its ranks, the time limit, a lost record
};

struct RestartDecision {
  std::optional<Duration> delay{};  // none: the job does not start again
  std::string why_not{};            // a message for the user; empty where the reason is known
};

RestartDecision decide_restart(const EndedAttempt& ended, const EndingSpec& spec);

// "the job starts again in 2 s (restart 2 of 3): rank 1 on host a ended with ..."
std::string restart_text(const JobRecord& ended, Duration delay, int most_restarts);

// The spec of an attempt: from the first restart on the output goes to DIR/restart.N.
JobSpec spec_of_attempt(JobSpec spec, int restarts);

}  // namespace hv::launcher
