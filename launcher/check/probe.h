// A probe: what it looks at, what it may find, and how it judges. One file each; the list of all.
// SPDX-License-Identifier: Apache-2.0
//
// Judging is pure. A probe fires only where this job would break or slow down: its thresholds stand
// in its verdicts, as words, and beside them, as numbers.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/check/check_input.h"

namespace hv::launcher {

// What a check has found: the values from which text, JSON and docs/troubleshooting.md are made.
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
  const char* fix;   // a command or a line
};

struct Finding {
  std::string probe;    // its name
  std::string verdict;  // its id
  Severity severity = Severity::kHarms;
  std::vector<std::string> hosts;  // whom it is about, in the job's order
  std::string fact;                // what was seen, with the hosts: "n[1-7]: 580.82, n8: 535.104"
  std::string why;
  std::string fix;
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

class Judgement;

struct Probe {
  const char* name;      // "clock"
  const char* looks_at;  // for people, "the hosts' clocks"
  std::vector<PossibleFinding> verdicts;
  void (*judge)(const CheckInput& input, Judgement* judgement);
};

// What a probe says while it judges.
class Judgement {
 public:
  // remote_shell: what stands in the place of ssh in fixes; empty: nothing does.
  Judgement(const Probe& probe, std::string remote_shell)
      : probe_(probe), remote_shell_(std::move(remote_shell)) {}
  // verdict: an id of the probe's. values: what its words in capitals stand for; HOST is the first
  // of the hosts unless they say, and the others are told behind a fix that names it; ADVICE, if
  // it is not empty, takes the fix's place.
  void add(const std::string& verdict, std::vector<std::string> hosts, std::string fact,
           Fill values = {});
  void not_probed(std::vector<std::string> hosts, std::string reason);

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<NotProbed>& gaps() const { return gaps_; }

 private:
  const Probe& probe_;
  const std::string remote_shell_;
  std::vector<Finding> findings_;
  std::vector<NotProbed> gaps_;
};

// In the order in which a launch meets what they look at.
const std::vector<const Probe*>& all_probes();

// names: of the probes that judge; empty: all of them.
CheckReport judge(const CheckInput& input, const std::set<std::string>& names = {});

// By its id, which is one of all_probes()'.
const PossibleFinding& verdict_named(const std::string& id);

}  // namespace hv::launcher
