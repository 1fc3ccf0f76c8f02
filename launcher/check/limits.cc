// Do the limits of processes let this host's ranks work?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kLeastLocked = 256 << 20;
constexpr std::uint64_t kOtherFiles = 64;  // of a rank, beside its connections
constexpr std::uint64_t kLeastStack = 1 << 20;
constexpr std::uint64_t kThreadsOfRank = 16;

std::string adapter_of(const CheckedHost& host) {
  for (const wire::RdmaAdapter& adapter : host.facts->rdma)
    if (!adapter.ports.empty()) return adapter.name;
  return "";
}

// Ranks talk by RDMA where two hosts have adapters that are up.
void judge_locked(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  const auto has_adapter = [](const ToldHost& one) { return !adapter_of(*one.host).empty(); };
  if (std::count_if(hosts.begin(), hosts.end(), has_adapter) < 2) return;
  std::vector<HostFact> low;
  std::string adapter;
  for (const ToldHost& one : hosts) {
    if (!has_adapter(one) || one.told->limits.locked_bytes >= kLeastLocked) continue;
    if (low.empty()) adapter = adapter_of(*one.host);
    low.emplace_back(one.host->name,
                     format_bytes(one.told->limits.locked_bytes) + " may be locked in memory");
  }
  add_grouped("memlock-low", low, judgement, {{"ADAPTER", adapter}});
}

void judge_files(const std::vector<ToldHost>& hosts, std::size_t ranks, Judgement* judgement) {
  std::vector<HostFact> low;
  for (const ToldHost& one : hosts) {
    const std::uint64_t limit = one.told->limits.open_files;
    if (one.ranks() == 0 || limit >= ranks + kOtherFiles) continue;
    low.emplace_back(one.host->name, std::to_string(limit) + " open files for each of " +
                                         std::to_string(ranks) + " ranks");
  }
  add_grouped("nofile-low", low, judgement);
}

void judge_stack(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::vector<HostFact> low;
  for (const ToldHost& one : hosts)
    if (one.ranks() > 0 && one.told->limits.stack_bytes < kLeastStack)
      low.emplace_back(one.host->name, "a stack of " + format_bytes(one.told->limits.stack_bytes));
  add_grouped("stack-low", low, judgement);
}

void judge_processes(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::vector<HostFact> low;
  for (const ToldHost& one : hosts) {
    const wire::LimitFacts& limits = one.told->limits;
    const std::uint64_t needed = limits.processes_of_user + kThreadsOfRank * one.ranks_to_come();
    if (one.ranks() == 0 || limits.processes >= needed) continue;
    low.emplace_back(one.host->name, std::to_string(limits.processes) +
                                         " processes and threads, of which " +
                                         std::to_string(limits.processes_of_user) + " run, for " +
                                         count_of(one.ranks(), "rank"));
  }
  add_grouped("nproc-low", low, judgement);
}

void judge_limits(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "limits", judgement);
  judge_locked(hosts, judgement);
  judge_files(hosts, input.plan.ranks.size(), judgement);
  judge_stack(hosts, judgement);
  judge_processes(hosts, judgement);
}

}  // namespace

const Probe kLimitProbe{
    "limits",
    "the soft limits of processes that ranks inherit on each host, and how many processes its user "
    "has",
    {{"memlock-low", Severity::kHarms,
      "less than 256 MiB may be locked in memory on one of several hosts with RDMA adapters",
      "NCCL and MPI lock what they send by $ADAPTER, and fail beyond that limit",
      "echo '* - memlock unlimited' | ssh $HOST sudo tee /etc/security/limits.d/90-memlock.conf; "
      "in slurm.conf PropagateResourceLimitsExcept=MEMLOCK; in a container --ulimit memlock=-1"},
     {"nofile-low", Severity::kHarms,
      "a process may open fewer files than the job has ranks, and 64",
      "a rank may have a connection to each other one",
      "echo '* - nofile 1048576' | ssh $HOST sudo tee /etc/security/limits.d/90-nofile.conf; in a "
      "container --ulimit nofile=1048576"},
     {"stack-low", Severity::kHarms, "a stack may have less than 1 MiB",
      "threads get as much each, and those of OpenMP and PyTorch end with a segmentation fault",
      "echo '* soft stack 8192' | ssh $HOST sudo tee /etc/security/limits.d/90-stack.conf; or "
      "ulimit -s 8192 where hvrun is called"},
     {"nproc-low", Severity::kHarms,
      "the user, or the agent's cgroup, may have fewer than 16 more processes and threads for each "
      "rank of the host",
      "ranks could not start their threads",
      "echo '* - nproc unlimited' | ssh $HOST sudo tee /etc/security/limits.d/90-nproc.conf; in a "
      "container --pids-limit=-1"}},
    judge_limits};

}  // namespace hv::launcher
