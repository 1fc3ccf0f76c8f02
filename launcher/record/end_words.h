// The end of a job in words: the cause, what is known of it, what followed from it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/output/alike.h"
#include "launcher/record/job_record.h"

namespace hv::launcher {

// What bounded the training, where its ranks have measured one for long enough. As end_text().
std::string training_summary(const JobRecord& record);
// Several lines, each ending in a newline; empty when there is no cause.
std::string end_text(const JobRecord& record, const LastLines& last_lines);
// What probes have found, likewise. told: the failure's own words; what they say already is only
// named.
std::string findings_text(const JobRecord& record, const std::string& told);
// Without a newline at its end.
std::string standing_text(const RecordedStanding& standing);
// "exit code 1", or why it was lost to the others.
std::string cause_text(const JobRecord& record, const FailureCause& cause);

struct Telling {
  int first = -1;            // whose text comes first and whole, if it has one; -1: nobody's
  bool names_first = false;  // else it has been named just before
};
// What the speakers said: each text once, with those who did.
std::string said_by(const std::vector<Speaker>& speakers, const Telling& telling,
                    const LastLines& last_lines);

// Of a line that is shown, an error of libhvrun's with its advice at the end, too.
constexpr std::size_t kMostOfLine = 4000;

}  // namespace hv::launcher
