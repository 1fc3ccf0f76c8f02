// What a check has found: values, from which text, JSON and docs/troubleshooting.md are made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hv::launcher {

enum class Severity {
  kCannotStart,  // the job would not come to run
  kHarms,        // it would break later, or run slower than it could
};

// One thing that a probe may find. Words in capitals behind '$' stand for what is only known then:
// "$HOST" for the host, or one of them.
struct PossibleFinding {
  const char* id;  // for programs: "clock-skew"
  Severity severity;
  const char* when;  // with its threshold: "two clocks are more than 2 s apart"
  const char* why;   // what that means for a job
  const char* mend;  // a command or a line
};

struct Finding {
  std::string probe;    // its name
  std::string verdict;  // its id
  Severity severity = Severity::kHarms;
  std::vector<std::string> hosts;  // whom it is about, in the job's order
  std::string fact;                // what was seen, with the hosts: "n[1-7]: 580.82, n8: 535.104"
  std::string why;
  std::string mend;
};

// What was to be looked at, and was not.
struct NotProbed {
  std::string probe;
  std::vector<std::string> hosts;
  std::string reason;
};

struct CheckReport {
  std::vector<Finding> findings;  // the worst first; of equals in the order of the probes
  std::vector<NotProbed> not_probed;
  bool can_start() const;
};

using Fill = std::vector<std::pair<std::string, std::string>>;
// "ssh $HOST true" with {{"HOST", "n8"}} is "ssh n8 true". A word that is not there stays.
std::string fill(const std::string& words, const Fill& values);

}  // namespace hv::launcher
