// What stands behind the directives: the hvrun line alone, in the shell's place, or with a guard
// that catches the signal before the time limit, passes it to hvrun, and requeues the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace hv::launcher {

// How a job comes back. Scheduler's words for the shell.
struct Requeue {
  std::string command;  // scontrol requeue "$SLURM_JOB_ID"
  // A condition that holds when SIGTERM comes of the time limit; empty: the clock tells.
  std::string is_over;
  int most = 0;        // times
  std::string count;   // an expression that says how often it has come back; empty: kept in a file
  std::string job_id;  // "$PBS_JOBID": names that file
};

struct Guard {
  std::string signal;  // that tells the script: USR1, USR2
  std::string passed;  // what hvrun then gets: the same for the ranks, or TERM to end them
  std::chrono::seconds before{};  // the time limit
  // Where the scheduler signals nobody, the time from the script's start: its own clock then does.
  std::optional<std::chrono::seconds> alarm;
  std::string ignored;  // a signal that the scheduler sends to all and that means nothing here
  std::optional<Requeue> requeue;
};

// line: the words of hvrun, quoted.
std::string script_body(const std::string& line, const std::optional<Guard>& guard);

}  // namespace hv::launcher
