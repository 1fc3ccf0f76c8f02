// LaunchPlan: which rank runs where, a pure function of (JobSpec, hosts, facts). A dry run prints
// it.
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

// Facts of a host that the plan uses; unknown before its agent has sent Hello.
struct HostFacts {
  std::vector<GpuFacts> gpus;  // in PCI order
  int usable_cores = 1;
  std::vector<CoreFacts> cores{};  // in the order of their nodes
  std::vector<AdapterFacts> rdma{};
  std::string visible_devices{};        // CUDA_VISIBLE_DEVICES as set there; empty: it is not
  std::vector<std::string> warnings{};  // about these facts
};

// inventory: null where it was not requested, or failed.
HostFacts host_facts(const wire::Facts& reported, const wire::Inventory* inventory = nullptr);

struct PlannedHost {
  std::string name;
  std::string user;
  int slots = 1;
  bool slots_assumed = false;  // not stated, and the host's facts are unknown
  int ranks = 0;
  std::size_t entry = 0;  // in HostList::entries
};

// A GPU or a MIG device, as printed.
struct PlannedGpu {
  int number = 0;      // among the host's GPUs in PCI order; MIG devices have their GPU's
  std::string uuid{};  // empty: not known
};

struct PlannedRank {
  RankIdentity identity;                // job_id is filled in at launch
  int host = 0;                         // index into LaunchPlan::hosts
  int program = 0;                      // index into JobSpec::programs
  std::vector<int> gpus{};              // indices into HostFacts::gpus; empty: none, or not known
  std::vector<PlannedGpu> gpu_names{};  // of `gpus`
  std::vector<int> cores{};  // it is bound to these, by the system's numbers; empty: not bound
  std::vector<int> nodes{};  // its NUMA nodes; empty: any, or not known
  // The placement for programs: CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, NCCL_IB_HCA, ...
  std::vector<std::pair<std::string, std::string>> variables{};
};

struct LaunchPlan {
  std::vector<PlannedHost> hosts;  // hosts with ranks, in the order of their first rank
  std::vector<PlannedRank> ranks;  // by rank
  std::vector<std::string> warnings;
};

// facts: one per entry of the list (one in all for this machine), none where they are unknown.
// Throws Error(kUsage) when the ranks do not fit, where a host lacks a GPU that its line names, and
// where several of its ranks would run one launcher (nested_launcher.h).
LaunchPlan make_plan(const JobSpec& spec, const HostList& list,
                     const std::vector<std::optional<HostFacts>>& facts);

// Throws the errors of make_plan() that no fact of a host can prevent. For use before hosts are
// asked.
void check_stated_slots(const JobSpec& spec, const HostList& list);

// Upper bound on the hosts that get ranks, before facts are known: hosts beyond it, in the list's
// order, need no agent. A host whose slots are not stated counts as one slot.
std::size_t hosts_needed(const JobSpec& spec, const HostList& list);

constexpr int kMostRanks = 1 << 20;

}  // namespace hv::launcher
