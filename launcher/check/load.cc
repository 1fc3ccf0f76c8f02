// Do others leave the ranks their cores, and do these run as fast as elsewhere?
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <set>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"

namespace hv::launcher {
namespace {

constexpr double kMostLost = 0.25;  // of the cores that ranks are to use
constexpr double kLeastLost = 1;    // cores

// Of those that the plan binds ranks to; of all where it binds them to none.
double cores_of_ranks(const CheckInput& input, const CheckedHost& host) {
  std::set<int> bound;
  for (const int rank : host.ranks) {
    const std::vector<int>& cores = input.plan.ranks.at(static_cast<std::size_t>(rank)).cores;
    if (cores.empty()) return host.facts->usable_cores;
    bound.insert(cores.begin(), cores.end());
  }
  return static_cast<double>(bound.size());
}

std::string in_words(const wire::LoadFacts& load) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f of %u cores are busy", load.busy_cores, load.cores);
  return text + (load.busiest.empty() ? std::string() : ", most by " + load.busiest);
}

// Whoever uses cores that ranks do not need is no harm.
void judge_busy(const CheckInput& input, const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::vector<HostFact> busy;
  for (const ToldHost& one : hosts) {
    const wire::LoadFacts& load = one.told->load;
    const double wanted = cores_of_ranks(input, *one.host);
    const double lost = wanted - (load.cores - load.busy_cores);
    if (load.cores > 0 && lost > wanted * kMostLost && lost >= kLeastLost)
      busy.emplace_back(one.host->name, in_words(load));
  }
  add_grouped("cores-busy", busy, judgement);
}

void judge_governor(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::vector<HostFact> governors;
  std::vector<std::string> slow;
  bool has_fast = false;
  for (const ToldHost& one : hosts) {
    const std::string& governor = one.told->load.governor;
    if (governor.empty()) continue;
    governors.emplace_back(one.host->name, governor);
    if (governor == "powersave") slow.push_back(one.host->name);
    has_fast = has_fast || governor == "performance";
  }
  if (!slow.empty() && has_fast)
    judgement->add("governor-slow", slow, groups_as_text(group_facts(governors)));
}

void judge_load(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "load", judgement);
  judge_busy(input, hosts, judgement);
  judge_governor(hosts, judgement);
}

}  // namespace

const Probe kLoadProbe{
    "load",
    "how many cores of each host others keep busy over half a second, and the CPUs' governor",
    {{"cores-busy", Severity::kHarms,
      "others leave the ranks of a host less than three quarters of the cores that they are to "
      "use, "
      "and take a whole core at least",
      "all ranks wait for the slowest one",
      "see 'ssh $HOST ps -eo pcpu,pid,user,args --sort=-pcpu | head' and wait for it or end it, or "
      "leave the host out"},
     {"governor-slow", Severity::kHarms,
      "the CPUs' governor is powersave on some hosts, and performance on others",
      "all ranks wait for the slowest one",
      "ssh $HOST sudo cpupower frequency-set -g performance"}},
    judge_load};

}  // namespace hv::launcher
