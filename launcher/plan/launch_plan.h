// LaunchPlan: which rank runs where. A pure function of (JobSpec, hosts, facts) makes it; a dry run
// prints it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/job_spec.h"
#include "src/contract/contract.h"

namespace hv::launcher {

// What the plan needs to know of a host; unknown before its agent has said hello.
struct HostFacts {
  int gpus = 0;
  int usable_cores = 1;
};

struct PlannedHost {
  std::string name;
  std::string user;
  int slots = 1;
  bool slots_assumed = false;  // not stated, and the host was not asked
  int ranks = 0;
  bool is_this_machine = false;
};

struct PlannedRank {
  RankIdentity identity;   // job_id is filled in at launch
  int host = 0;            // index into LaunchPlan::hosts
  std::optional<int> gpu;  // index among the host's GPUs in PCI order; none: no GPU, or not known
};

struct LaunchPlan {
  std::vector<PlannedHost> hosts;  // those that have ranks, in order
  std::vector<PlannedRank> ranks;  // by rank
  std::vector<std::string> warnings;
};

// facts: one per entry of the list (one in all for this machine), none where the host was not
// asked. Ranks fill the first host's slots, then the next's. Throws Error(kUsage) when they do not
// fit.
LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts);

// Upper bound on the hosts that ranks can be placed on before facts are known: hosts beyond it need
// no agent. Hosts with stated slots fill first to last; a host without a stated number may have one
// slot at least.
std::size_t hosts_needed(const JobSpec& spec, const HostList& list);

constexpr int kMostRanks = 1 << 20;

}  // namespace hv::launcher
