// JobRecord: all that the end of a job is told from. A value: made of a running job by supervise,
// written as --summary and job.json, read back by `hvrun explain`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/record/training_split.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Which process something was, so that another one can tell whether it still runs.
struct RunningProcess {
  std::uint32_t pid = 0;  // 0: not known
  std::string host{};
  // Of that boot of the machine, in this PID namespace, begun then; as /proc tells them.
  std::string boot_id{}, pid_namespace{};
  std::uint64_t start_ticks = 0;
};

enum class StillRuns { kYes, kNo, kCannotTell };  // it ran on another machine or in a container

// root is put before every path.
RunningProcess this_process(const std::string& root = "");
StillRuns still_runs(const RunningProcess& process, const std::string& root = "");

// What the cause of a job's failure was; FailurePolicy decides.
struct FailureCause {
  std::optional<int> rank;  // the cause, when it is a rank
  std::optional<int> host;  // the cause, when it is a host
  std::string reason;       // of the lost host, or of a rank that has not ended by itself
  bool is_stopped = false;  // that rank stands still
  std::string missed_at;    // that rank has ended with 0, and others wait for it in this call
  std::optional<int> left_before;  // ended with 0 before the cause, which may have needed it
  std::vector<int> consequences;   // ranks that failed because of it, ascending
  int exit_code = 0;
};

struct RecordedHost {
  std::string name;
  bool gave_up = false;  // its agent ended the job there, unasked
  std::string advice{};  // what to do about that
};

struct RecordedRank {
  int host = 0;                     // in JobRecord::hosts
  std::uint32_t pid = 0;            // 0: not known
  std::optional<ExitStatus> end{};  // none: not known
  std::int64_t ended_ns = 0;        // wall clock of hvrun's machine
  bool was_ended_by_hvrun = false;  // by that signal
  bool never_joined = false;
  bool has_left = false;         // with goodbye
  bool has_lost_a_peer = false;  // and said so
  wire::PostMortem found{};
  wire::StepTimes step_times{};
};

// What the probes that fit the failure have found (launcher/check has them).
struct RecordedFinding {
  std::string verdict;  // its id: "library-missing"
  bool cannot_start = false;
  std::vector<std::string> hosts{};
  std::string fact{};  // the hosts in few words, ": ", and what was seen
  std::string when{}, why{}, mend{};
};

// Before each line of a stack, below the line that says whose it is.
inline constexpr char kStackIndent[] = "      ";

// Where ranks stood when a stalled tensor, SIGQUIT or --timeout had hvrun ask.
struct RecordedStanding {
  std::string what;                   // "where the ranks stand:"
  std::vector<std::string> groups{};  // each some lines: who, and below it the stack, indented
};

// State of a job whose end has not been written.
inline constexpr char kStateRunning[] = "running";

struct JobRecord {
  std::string state = kStateRunning;  // or one of JobEnd's
  int exit_code = 0;
  double seconds = 0;  // since the launch began
  std::uint64_t lost_output_bytes = 0;
  std::string error{}, advice{};  // of what was not a rank's fault
  std::vector<std::string> command{};
  std::int64_t begun_ns = 0;  // wall clock
  RunningProcess hvrun{};
  std::vector<RecordedHost> hosts{};
  std::vector<RecordedRank> ranks{};
  std::optional<FailureCause> cause{};
  std::vector<RecordedFinding> findings{};
  std::vector<std::string> not_probed{};      // "gpus on n8: why"
  std::vector<RecordedStanding> standings{};  // in order

  const std::string& host_of(int rank) const;
  // nullptr: not known.
  const ExitStatus* end_of(int rank) const;
  bool failed(int rank) const;
  std::vector<int> ranks_on(int host) const;
  std::optional<TrainingSplit> training() const;
};

// A rank's last lines, oldest first.
using LastLines = std::function<std::vector<std::string>(int rank)>;

}  // namespace hv::launcher
