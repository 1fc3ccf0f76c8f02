// The end of a job as text: the cause, its circumstances, its consequences. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/output/alike.h"
#include "launcher/record/job_record.h"

namespace hv::launcher {

// What limited the training, as end_text() has it; empty unless ranks measured it for long enough.
std::string training_summary(const JobRecord& record);
// Several lines, each with a newline: the cause, or what there is to say of ranks that hvrun ended
// without one; may be empty. is_cause_above: the last lines of the rank that is the cause stand
// right above this text, which then does not repeat them.
std::string end_text(const JobRecord& record, const LastLines& last_lines,
                     bool is_cause_above = false);
// The first line of the cause without "hvrun: error: "; for a failure without a cause: the error.
std::string failure_line(const JobRecord& record);
// The findings of checks, as end_text() has the cause. failure: the text of the failure; a finding
// that it contains already is only named.
std::string findings_text(const JobRecord& record, const std::string& failure);
// Without a newline at its end.
std::string standing_text(const RecordedStanding& standing);
// "exit code 1", or why other ranks lost the rank.
std::string cause_text(const JobRecord& record, const FailureCause& cause);

struct FirstSpeaker {
  int rank = -1;          // its text, if it has one, comes first and whole; -1: no rank's
  bool is_named = false;  // the text has its rank; else the line before has named it
  bool is_above = false;  // its text stands right above this one
};
// The last lines of the speakers: each text once, with the ranks that wrote it.
std::string last_lines_text(const std::vector<Speaker>& speakers, const FirstSpeaker& first,
                            const LastLines& last_lines);

// Limit for a line that is shown. Errors of libhvrun fit, with the advice at their end.
constexpr std::size_t kMostLineBytes = 4000;

}  // namespace hv::launcher
