// LaunchPlan: which rank runs where. A pure function of (JobSpec, hosts, facts) makes it; a dry run
// prints it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/core_binding.h"
#include "launcher/plan/device_choice.h"
#include "launcher/plan/job_spec.h"
#include "src/contract/contract.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// What the plan needs to know of a host; unknown before its agent has said hello.
struct HostFacts {
  std::vector<GpuFacts> gpus;  // in PCI order
  int usable_cores = 1;
  std::vector<CoreFacts> cores{};  // in the order of their nodes
  std::vector<AdapterFacts> rdma{};
  std::vector<std::string> warnings{};  // on what was told
};

// What an agent has told. inventory: null where it was not asked for, or could not be had.
HostFacts host_facts(const wire::Facts& told, const wire::Inventory* inventory = nullptr);

struct PlannedHost {
  std::string name;
  std::string user;
  int slots = 1;
  bool slots_assumed = false;  // not stated, and the host was not asked
  int ranks = 0;
  std::size_t entry = 0;  // in HostList::entries
};

// A GPU, or a part of one, as people see it.
struct PlannedGpu {
  int number = 0;      // among the host's GPUs in PCI order
  std::string uuid{};  // a MIG device's own; empty: not known
};

struct PlannedRank {
  RankIdentity identity;                // job_id is filled in at launch
  int host = 0;                         // index into LaunchPlan::hosts
  int program = 0;                      // index into JobSpec::programs
  std::vector<int> gpus{};              // places in HostFacts::gpus; none, or not known
  std::vector<PlannedGpu> gpu_names{};  // of these
  std::vector<int> cores{};  // that it is bound to, as its system numbers them; empty: to none
  std::vector<int> nodes{};  // its NUMA nodes; empty: any, or not known
  // What says where it has been put: CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, NCCL_IB_HCA, ...
  std::vector<std::pair<std::string, std::string>> variables{};
};

struct LaunchPlan {
  std::vector<PlannedHost> hosts;  // those that have ranks, in the order of their first one
  std::vector<PlannedRank> ranks;  // by rank
  std::vector<std::string> warnings;
};

// facts: one per entry of the list (one in all for this machine), none where the host was not
// asked. Throws Error(kUsage) when the ranks do not fit, and where a host lacks a GPU that its line
// names.
LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts);

// Throws what make_plan() will throw whatever the hosts tell of themselves: before one is asked.
void check_stated_slots(const JobSpec& spec, const HostList& list);

// Upper bound on the hosts that ranks can be placed on before facts are known: hosts beyond it, in
// the list's order, need no agent. A host without a stated number may have one slot at least.
std::size_t hosts_needed(const JobSpec& spec, const HostList& list);

constexpr int kMostRanks = 1 << 20;

}  // namespace hv::launcher
