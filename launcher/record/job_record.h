// JobRecord: everything that the report of a job's end needs. A value: supervise makes it,
// --summary and job.json hold it, `hvrun explain` reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/record/training_split.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// Identifies a process, so that another one can find out whether it still runs.
struct RunningProcess {
  std::uint32_t pid = 0;  // 0: not known
  std::string host{};
  // From /proc: boot of the machine, PID namespace, start of the process in clock ticks.
  std::string boot_id{}, pid_namespace{};
  std::uint64_t start_ticks = 0;
  friend bool operator==(const RunningProcess&, const RunningProcess&) = default;
};

enum class StillRuns { kYes, kNo, kCannotTell };  // cannot tell: another machine or container

RunningProcess this_process();
StillRuns still_runs(const RunningProcess& process);

// The cause of a job's failure: a rank or a host. FailurePolicy decides.
struct FailureCause {
  std::optional<int> rank;
  std::optional<int> host;
  std::string reason;              // of the lost host, or of a lost rank that still runs
  bool is_stopped = false;         // the lost rank is in state T
  std::string awaited_in_call;     // the rank ended with 0, and others wait for it in this call
  std::optional<int> left_before;  // a rank that ended with 0 before the cause, which may have
                                   // needed it
  std::vector<int> consequences;   // ranks that failed because of the cause, ascending
  int exit_code = 0;
};

// What may still run on a host that was lost, or whose agent ended the job there.
enum class LeftBehind : std::uint8_t {
  kEndsSoon,  // its agent and guard end it
  kNothing,   // every process of the job was reported to have ended
  kNamed,     // processes that may belong to the job were named
  kUnknown    // no second agent has reported: see RecordedHost::unswept
};

struct RecordedHost {
  std::string name;
  bool gave_up = false;  // its agent ended the job there, unrequested
  std::string advice{};  // how to prevent that
  LeftBehind left_behind = LeftBehind::kEndsSoon;
  std::string unswept{};  // kUnknown: why
  std::string remedy{};   // kUnknown: what to try
};

struct RecordedRank {
  int host = 0;                     // index into JobRecord::hosts
  std::uint32_t pid = 0;            // 0: not known
  std::optional<ExitStatus> end{};  // none: not known
  std::int64_t ended_ns = 0;        // wall clock of hvrun's machine
  bool was_ended_by_hvrun = false;  // `end` is a signal that hvrun sent
  bool never_joined = false;
  bool has_left = false;         // it sent a leave notice (hvrun_shutdown)
  bool has_lost_a_peer = false;  // it reported a lost peer
  bool has_input = false;        // --stdin: the others have /dev/null
  // For how long before its end it had written nothing, where it may hold text back: C's printf
  // does in a pipe. 0: it holds none back.
  double quiet_s = 0;
  wire::PostMortem found{};
  double grace_s = 0;            // between SIGTERM and SIGKILL, where SIGKILL ended it; 0: none
  bool is_grace_stated = false;  // that is --grace
  wire::SigtermUse on_sigterm = wire::SigtermUse::kDefault;  // where hvrun sent it
  wire::StepTimes step_times{};
};

// A finding of the checks that hvrun ran after the failure (launcher/check).
struct RecordedFinding {
  std::string id;  // "library-missing"
  bool cannot_start = false;
  std::vector<std::string> hosts{};
  std::string fact{};  // "HOSTS: OBSERVATION"
  std::string condition{}, why{}, fix{};
};

// Indents each line of a stack, below the line that names its ranks.
inline constexpr char kStackIndent[] = "      ";

// The stacks of ranks after a stalled tensor, at SIGQUIT or at --timeout.
struct RecordedStanding {
  std::string heading;                // "where the ranks stand:"
  std::vector<std::string> groups{};  // a line with the ranks, then their stack, indented
};

// One run of a job that may start again (--restarts).
struct RecordedAttempt {
  int restarts = 0;           // before it
  bool is_restarted = false;  // the job starts again after it
};

// State of a job whose end has not been written.
inline constexpr char kStateRunning[] = "running";

// Interval at which hvrun renews job.json while the job runs.
inline constexpr std::chrono::seconds kRenewalInterval{10};
// An older record of a running job is no sign that the job still runs.
inline constexpr std::chrono::seconds kRecordIsStale{30};

struct RecordTimes {
  double seconds = 0;                        // since the launch began
  std::int64_t started_ns = 0;               // wall clock; the launch began
  std::int64_t written_ns = 0;               // wall clock; 0: not known (version 1)
  std::optional<double> steps_per_second{};  // while it runs: since the renewal before
};

// How far a job has come whose ranks report their training's steps.
struct JobProgress {
  std::uint64_t steps = 0;            // that every reporting rank has taken
  std::optional<int> slowest_rank{};  // the others wait for it; none: no rank stands out
  double others_wait_s = 0;           // for that rank, a step
};

struct JobRecord {
  std::string state = kStateRunning;  // or one of JobEnd's
  int exit_code = 0;                  // 0 while it runs
  RecordTimes times{};
  std::uint64_t lost_output_bytes = 0;
  std::string error{}, advice{};  // of a failure that no rank caused
  std::vector<std::string> command{};
  RecordedAttempt attempt{};
  RunningProcess hvrun{};
  std::vector<RecordedHost> hosts{};
  std::vector<RecordedRank> ranks{};
  std::optional<FailureCause> cause{};
  std::vector<RecordedFinding> findings{};
  std::vector<std::string> not_checked{};     // "gpus on n8: why"
  std::vector<RecordedStanding> standings{};  // in order

  const std::string& host_of(int rank) const;
  // nullptr: not known.
  const ExitStatus* end_of(int rank) const;
  bool failed(int rank) const;
  std::vector<int> ranks_on(int host) const;
  std::optional<TrainingSplit> training() const;
  // none: no rank has reported a step.
  std::optional<JobProgress> progress() const;
  bool is_running() const { return state == kStateRunning; }
};

// A rank's last lines, oldest first.
using LastLines = std::function<std::vector<std::string>(int rank)>;

}  // namespace hv::launcher
