// `hvrun explain DIR`: the end of a job from what it has left in its output folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/record/job_folder.h"

namespace hv::launcher {

// Where job.json has the end, in the words in which the job told it; else by what the ranks wrote
// last.
std::string explanation_as_text(const JobFolder& folder);
std::string explanation_as_json(const JobFolder& folder);

// Whether these last lines are those of a program that ends in an error: a traceback, an
// assertion, a signal told by its runtime.
bool end_in_an_error(const std::vector<std::string>& lines);
// And that error is the loss of another rank.
bool speak_of_a_lost_peer(const std::vector<std::string>& lines);

}  // namespace hv::launcher
