// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/exit_summary.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/check/probe.h"
#include "launcher/check/report/report_text.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// stated: by --grace.
bool is_stated(const std::optional<Duration>& stated, double grace_s) {
  constexpr double kConversion = 1e-6;  // loses less than that
  return stated && std::abs(Seconds(*stated).count() - grace_s) < kConversion;
}

void add_end(const Job& job, int number, RecordedRank* rank) {
  if (!job.policy) return;
  rank->has_lost_a_peer = job.policy->has_lost_a_peer(number);
  const auto found = job.policy->ends().find(number);
  if (found == job.policy->ends().end()) return;
  const RankEnd& end = found->second;
  rank->end = end.status;
  rank->ended_ns = end.time_ns;
  rank->was_ended_by_hvrun = end.signal_was_ours;
  rank->never_joined = end.never_joined;
  rank->has_left = end.left_ns != 0;
  rank->found = end.found;
  rank->on_sigterm = end.on_sigterm;
  if (end.may_hold_text && !job.spec.output.pty)
    rank->quiet_s = Seconds(job.slots.of_rank(number).quiet).count();
  const bool is_killed = end.signal_was_ours && end.status.by_signal && end.status.code == SIGKILL;
  if (is_killed) rank->grace_s = end.grace_s;
  rank->is_grace_stated = is_killed && is_stated(job.spec.ending.grace, end.grace_s);
}

// Several programs are joined by ":", as on the command line.
std::vector<std::string> command_of(const JobSpec& spec) {
  std::vector<std::string> words;
  for (const ProgramSpec& program : spec.programs) {
    if (!words.empty()) words.emplace_back(":");
    words.insert(words.end(), program.argv.begin(), program.argv.end());
  }
  return words;
}

std::string timeout_text(const Job& job) {
  const std::string running = job.running_ranks();
  return "the job ran longer than --timeout " + format_duration(*job.spec.ending.timeout) +
         (running.empty() ? "" : "; still running: " + running);
}

bool have_all_ended(const Job& job, const std::vector<int>& ranks) {
  return job.policy && std::all_of(ranks.begin(), ranks.end(),
                                   [&job](int rank) { return job.policy->ends().count(rank) > 0; });
}

// Concluded from what the host's agents have reported.
LeftBehind left_behind(const Job& job, const Host& host) {
  if (host.phase.may_processes_remain()) return LeftBehind::kNamed;
  if (host.phase.is_empty()) return LeftBehind::kNothing;
  const HostLost* const lost = host.phase.lost();
  if (lost && lost->sweep_error) return LeftBehind::kUnknown;
  if (lost && lost->sweep == HostLost::Sweep::kSwept) return LeftBehind::kNothing;
  if (lost && lost->sweep != HostLost::Sweep::kNotBegun) return LeftBehind::kUnknown;
  const bool has_ended =
      host.phase.unrequested_end() && have_all_ended(job, job.slots.ranks_on(host.id));
  return has_ended ? LeftBehind::kNothing : LeftBehind::kEndsSoon;
}

std::string unswept_reason(const Host& host) {
  const std::string what = "no second agent has ended them: ";
  const HostLost& lost = *host.phase.lost();
  if (lost.sweep_error) return what + lost.sweep_error->what();
  const bool has_second_agent = host.link && host.link->id().number > 0;
  if (lost.sweep == HostLost::Sweep::kRunning && !has_second_agent)
    return what + "none could be started in time";
  return what + "the one that was started did not report in time";
}

// is_final: a sweep that has not reported by now is not waited for any longer.
RecordedHost recorded_host(const Job& job, const Host& host, bool is_final) {
  const UnrequestedEnd* const end = host.phase.unrequested_end();
  RecordedHost recorded{host.target.name, end != nullptr, end ? end->advice : ""};
  recorded.left_behind = left_behind(job, host);
  if (host.phase.is_sweeping() && !is_final) recorded.left_behind = LeftBehind::kEndsSoon;
  if (recorded.left_behind != LeftBehind::kUnknown) return recorded;
  recorded.unswept = unswept_reason(host);
  recorded.remedy =
      "once that host can be reached, list them there: grep -lsz ^HVRUN_JOB_ID=" + job.identity.id +
      " /proc/[0-9]*/environ";
  return recorded;
}

JobEnd end_by(const Job& job, const StopReason& stop) {
  const auto failed = [](const char* state, ErrorKind kind, std::string error, std::string advice) {
    return JobEnd{.exit_code = static_cast<int>(kind),
                  .state = state,
                  .error = std::move(error),
                  .advice = std::move(advice)};
  };
  switch (stop.kind) {
    case StopReason::Kind::kSignal:
      return {.exit_code = 128 + stop.signal, .state = "interrupted"};
    case StopReason::Kind::kTimeout:
      return failed("timeout", ErrorKind::kTimeout, timeout_text(job),
                    job.have_ranks_ended()
                        ? "a longer --timeout"
                        : "a longer --timeout, or look where its ranks stood, above");
    case StopReason::Kind::kStalled:
      return failed("timeout", ErrorKind::kTimeout, stop.text, stop.advice);
    case StopReason::Kind::kCannotStart:
      return failed("not_started", ErrorKind::kStart, stop.text, stop.advice);
    case StopReason::Kind::kOutputClosed:
      return {.exit_code = 128 + SIGPIPE, .state = "output_closed"};
    case StopReason::Kind::kOutputFailed:
      return failed(
          "output_failed", ErrorKind::kStart,
          stop.text + "; the job was ended so that no output is lost unseen",
          stop.advice.empty() ? "make room there, or send the output elsewhere" : stop.advice);
  }
  return {};
}

}  // namespace

JobEnd end_of(const Job& job) {
  JobEnd end;
  end.state = "ok";
  if (job.stop()) {
    end = end_by(job, *job.stop());
  } else if (job.policy && job.policy->failed()) {
    end.cause = job.policy->cause();
    end.state = end.cause->host ? "host_lost" : "rank_failed";
    end.exit_code = end.cause->exit_code;
  }
  end.seconds = seconds_since(job.identity.begun);
  return end;
}

JobRecord record_of(const Job& job) {
  JobRecord record;
  record.command = command_of(job.spec);
  record.attempt.restarts = job.identity.restarts;
  record.times.started_ns = job.identity.begun_wall_clock_ns;
  record.times.seconds = seconds_since(job.identity.begun);
  record.times.written_ns = wall_clock_ns();
  record.standings = job.standings;
  record.hvrun = job.identity.hvrun;
  for (const Host& host : job.members()) record.hosts.push_back(recorded_host(job, host, false));
  for (const PlannedRank& planned : job.plan().ranks) {
    RecordedRank rank;
    rank.host = planned.host;
    const Slot& slot = job.slots.of_rank(planned.identity.rank);
    rank.pid = slot.pid;
    rank.step_times = slot.step_times;
    add_end(job, planned.identity.rank, &rank);
    rank.has_input = job.spec.output.stdin_rank == planned.identity.rank;
    record.ranks.push_back(std::move(rank));
  }
  return record;
}

JobRecord record_of(const Job& job, const JobEnd& end) {
  JobRecord record = record_of(job);
  record.state = end.state;
  record.exit_code = end.exit_code;
  record.times.seconds = end.seconds;
  record.lost_output_bytes = end.lost_output_bytes;
  record.hosts.clear();
  for (const Host& host : job.members()) record.hosts.push_back(recorded_host(job, host, true));
  record.error = end.error;
  record.advice = end.advice;
  record.cause = end.cause;
  for (const Finding& finding : end.found.findings)
    record.findings.push_back({finding.verdict, finding.severity == Severity::kCannotStart,
                               finding.hosts, finding.fact, verdict_named(finding.verdict).when,
                               finding.why, finding.fix});
  for (const NotProbed& gap : end.found.not_probed) record.not_checked.push_back(gap_in_words(gap));
  return record;
}

}  // namespace hv::launcher
