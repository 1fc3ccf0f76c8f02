// The end of a job in words (stderr) and as JSON (--summary). Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/supervise/job.h"

namespace hv::launcher {

struct JobEnd {
  int exit_code = 0;
  // "ok", "rank_failed", "host_lost", "timeout", "interrupted", "output_closed", "output_failed" or
  // "not_started".
  std::string state;
  std::optional<Verdict> verdict;
  std::string error;                    // not_started, timeout, output_failed: the error's text
  double seconds = 0;                   // since the launch began
  std::uint64_t lost_output_bytes = 0;  // that nobody read in time
};

// The rank's last lines, oldest first.
using LastLines = std::function<std::vector<std::string>(int rank)>;

// What bounded the training, where its ranks have measured one for long enough. As summary_text().
std::string training_summary(const Job& job);
// Several lines, each ending in a newline; empty when there is nothing to say.
std::string summary_text(const Job& job, const JobEnd& end, const LastLines& last_lines);
std::string summary_json(const Job& job, const JobEnd& end, const LastLines& last_lines);

}  // namespace hv::launcher
