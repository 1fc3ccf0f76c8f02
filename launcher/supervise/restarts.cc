// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/restarts.h"

#include <algorithm>
#include <utility>

#include "launcher/record/end_text.h"
#include "launcher/record/job_folder.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr int kUsageCode = static_cast<int>(ErrorKind::kUsage);

bool is_failure(const EndedAttempt& ended) {
  return ended.state == "rank_failed" || ended.state == "host_lost" || ended.state == "not_started";
}

Duration delay_after(int restarts, Duration first) {
  Duration delay = first;
  for (int i = 0; i < restarts && delay < kMostRestartDelay; ++i) delay *= 2;
  return std::min(delay, std::max(first, kMostRestartDelay));
}

// Empty: nothing is against it.
std::string reason_against(const EndedAttempt& ended, const EndingSpec& spec) {
  if (ended.exit_code == kUsageCode)
    return "exit code 2 reports a usage error, which a restart does not change";
  if (ended.state == "not_started" && ended.restarts == 0)
    return "it never ran, and --restarts is for a job that has started once";
  if (!ended.reason.empty()) return ended.reason;
  if (ended.restarts >= spec.restarts)
    return "its restarts are used up (--restarts " + std::to_string(spec.restarts) + ")";
  return "";
}

}  // namespace

RestartDecision decide_restart(const EndedAttempt& ended, const EndingSpec& spec) {
  if (spec.restarts == 0 || !is_failure(ended)) return {};
  if (ended.was_stopped && ended.reason.empty()) return {};
  if (const std::string reason = reason_against(ended, spec); !reason.empty())
    return {std::nullopt, "the job does not start again: " + reason};
  return {delay_after(ended.restarts, spec.restart_delay), ""};
}

std::string restart_text(const JobRecord& ended, Duration delay, int most_restarts) {
  return "the job starts again " +
         (delay > Duration::zero() ? "in " + format_duration(delay) : std::string("now")) +
         " (restart " + std::to_string(ended.attempt.restarts + 1) + " of " +
         std::to_string(most_restarts) + "): " + failure_line(ended);
}

JobSpec spec_of_attempt(JobSpec spec, int restarts) {
  std::string& directory = spec.output.output_directory;
  if (restarts > 0 && !directory.empty()) directory = restart_directory(directory, restarts);
  return spec;
}

}  // namespace hv::launcher
