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
#include "launcher/check/finding.h"

namespace hv::launcher {

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
  // remote_shell: what stands in the place of ssh in mends; empty: nothing does.
  Judgement(const Probe& probe, std::string remote_shell)
      : probe_(probe), remote_shell_(std::move(remote_shell)) {}
  // verdict: an id of the probe's. values: what its words in capitals stand for; HOST is the first
  // of the hosts unless they say, and the others are told behind a mend that names it; ADVICE, if
  // it is not empty, takes the mend's place.
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
