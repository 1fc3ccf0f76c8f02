// What the cause of a job's failure was; FailurePolicy decides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hv::launcher {

struct Verdict {
  std::optional<int> rank;  // the cause, when it is a rank
  std::optional<int> host;  // the cause, when it is a host
  std::string reason;       // of the lost host, or of a rank that has not ended by itself
  bool is_stopped = false;  // that rank stands still
  std::string missed_at;    // that rank has ended with 0, and others wait for it in this call
  std::optional<int> left_before;  // ended with 0 before the cause, which may have needed it
  std::vector<int> consequences;   // ranks that failed because of it, ascending
  int exit_code = 0;
};

}  // namespace hv::launcher
