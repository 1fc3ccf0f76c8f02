// `hvrun explain DIR`: the end of a job, from the files in its output directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/record/job_folder.h"

namespace hv::launcher {

// The text that hvrun printed at the end of the job, if job.json has it; else a text from the last
// lines of the ranks.
std::string explanation_as_text(const JobFolder& folder);
std::string explanation_as_json(const JobFolder& folder);

// These last lines have an error that ends a program: a traceback, an assertion, a signal that its
// runtime reports.
bool have_fatal_error(const std::vector<std::string>& lines);
// These last lines report the loss of another rank.
bool report_lost_peer(const std::vector<std::string>& lines);

}  // namespace hv::launcher
