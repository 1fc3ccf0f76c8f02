// The outcome of a job, and the record of a job that runs or has ended. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/check/probe.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

struct JobEnd {
  int exit_code = 0;
  // "ok", "rank_failed", "host_lost", "timeout", "interrupted", "output_closed", "output_failed" or
  // "not_started".
  std::string state{};
  std::optional<FailureCause> cause{};
  std::string error{};                  // not_started, timeout, output_failed: the error's text
  double seconds = 0;                   // since the launch of this attempt began
  std::uint64_t lost_output_bytes = 0;  // not read in time
  std::string advice{};                 // what to do about the error
  CheckReport found{};                  // by the probes that fit the failure
};

// The outcome of the job. Called before hvrun ends the ranks that still run.
JobEnd end_of(const Job& job);

// The first is for a job that runs or has not been started yet.
JobRecord record_of(const Job& job);
JobRecord record_of(const Job& job, const JobEnd& end);

}  // namespace hv::launcher
