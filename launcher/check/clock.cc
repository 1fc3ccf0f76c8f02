// Do the hosts' clocks agree?
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr double kMostSkew_s = 2;

std::string skew_as_text(double seconds) {
  return format_duration(Seconds(std::abs(seconds))) + (seconds > 0 ? " ahead" : " behind");
}

// One that is off alone is wrong itself; where most are, this machine is.
void judge_clock(const CheckInput& input, Judgement* judgement) {
  std::vector<std::string> wrong;
  std::vector<std::pair<std::string, std::string>> facts;
  std::size_t reached = 0;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    if (!input.is_reached(i)) continue;
    const CheckedHost& host = input.hosts[i];
    ++reached;
    if (std::abs(host.clock_ahead_s) - host.clock_error_s <= kMostSkew_s) continue;
    wrong.push_back(host.name);
    facts.emplace_back(host.name, skew_as_text(host.clock_ahead_s));
  }
  if (wrong.empty()) return;
  const bool is_here = reached > 1 && wrong.size() == reached;
  judgement->add(is_here ? "clock-here" : "clock-skew", wrong,
                 groups_as_text(group_facts(facts)) + ", beside this machine's clock");
}

}  // namespace

const Probe kClockProbe{
    "clock",
    "each host's wall clock, beside this machine's",
    {{"clock-skew", Severity::kHarms, "a host's clock is more than 2 s off this machine's",
      "times in logs, timelines and checkpoints of those hosts contradict each other, and tickets "
      "(Kerberos, tokens) may not hold",
      "ssh $HOST sudo timedatectl set-ntp true"},
     {"clock-here", Severity::kHarms,
      "the clocks of all of several hosts are more than 2 s off this machine's",
      "times in logs of this machine contradict those of the hosts",
      "sudo timedatectl set-ntp true"}},
    judge_clock};

}  // namespace hv::launcher
