// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/exit_summary.h"

#include "launcher/check/probe.h"
#include "launcher/check/report/report_text.h"

namespace hv::launcher {
namespace {

void add_end(const FailurePolicy& policy, int number, RecordedRank* rank) {
  rank->has_lost_a_peer = policy.has_lost_a_peer(number);
  const auto found = policy.ends().find(number);
  if (found == policy.ends().end()) return;
  const RankEnd& end = found->second;
  rank->end = end.status;
  rank->ended_ns = end.time_ns;
  rank->was_ended_by_hvrun = end.signal_was_ours;
  rank->never_joined = end.never_joined;
  rank->has_left = end.left_ns != 0;
  rank->found = end.found;
}

// Of several programs, as they were typed.
std::vector<std::string> command_of(const JobSpec& spec) {
  std::vector<std::string> words;
  for (const ProgramSpec& program : spec.programs) {
    if (!words.empty()) words.emplace_back(":");
    words.insert(words.end(), program.argv.begin(), program.argv.end());
  }
  return words;
}

}  // namespace

JobRecord record_of(const Job& job) {
  JobRecord record;
  record.command = command_of(job.spec);
  record.begun_ns = job.begun_wall_clock_ns;
  record.standings = job.standings;
  record.hvrun = job.hvrun;
  for (const HostState& host : job.hosts)
    record.hosts.push_back({host.target.name, host.gave_up, host.gave_up_advice});
  for (const PlannedRank& planned : job.plan.ranks) {
    RecordedRank rank;
    rank.host = planned.host;
    const auto index = static_cast<std::size_t>(planned.identity.rank);
    if (index < job.ranks.size()) {
      rank.pid = job.ranks[index].pid;
      rank.step_times = job.ranks[index].step_times;
    }
    if (job.policy) add_end(*job.policy, planned.identity.rank, &rank);
    record.ranks.push_back(std::move(rank));
  }
  return record;
}

JobRecord record_of(const Job& job, const JobEnd& end) {
  JobRecord record = record_of(job);
  record.state = end.state;
  record.exit_code = end.exit_code;
  record.seconds = end.seconds;
  record.lost_output_bytes = end.lost_output_bytes;
  record.error = end.error;
  record.advice = end.advice;
  record.verdict = end.verdict;
  for (const Finding& finding : end.found.findings)
    record.findings.push_back({finding.verdict, finding.severity == Severity::kCannotStart,
                               finding.hosts, finding.fact, verdict_named(finding.verdict).when,
                               finding.why, finding.mend});
  for (const NotProbed& gap : end.found.not_probed) record.not_probed.push_back(gap_in_words(gap));
  return record;
}

}  // namespace hv::launcher
