// Is there memory for the ranks of each host, and shared memory for what they run?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kLeastOfRank = 256 << 20;
constexpr std::uint64_t kLeastShmOfRank = 64 << 20;

void judge_free(const std::vector<ToldHost>& hosts, Judgement* judgement) {
  std::vector<HostFact> low, limited;
  for (const ToldHost& one : hosts) {
    const wire::MemoryFacts& memory = one.told->memory;
    if (memory.total_bytes == 0 || memory.available_bytes >= kLeastOfRank * one.ranks_to_come())
      continue;
    const bool is_limited = memory.cgroup_bytes < kLeastOfRank * one.ranks_to_come();
    const std::uint64_t bytes = is_limited ? memory.cgroup_bytes : memory.available_bytes;
    (is_limited ? limited : low)
        .emplace_back(one.host->name, format_bytes(bytes) +
                                          (is_limited ? " by its cgroup" : " available") + " for " +
                                          count_of(one.ranks_to_come(), "rank"));
  }
  add_grouped("memory-low", low, judgement);
  add_grouped("memory-limit", limited, judgement);
}

bool has_torch(const wire::CheckReply& told) {
  for (const wire::ProgramFacts& program : told.programs)
    for (const wire::PythonFacts& python : program.python)
      for (const auto& [name, version] : python.packages)
        if (name == "torch") return true;
  return false;
}

bool uses_gpus(const CheckInput& input, const CheckedHost& host) {
  return std::any_of(host.ranks.begin(), host.ranks.end(), [&input](int rank) {
    return !input.plan.ranks.at(static_cast<std::size_t>(rank)).gpus.empty();
  });
}

// hvrun's own ranks share memory without /dev/shm; NCCL and the workers of PyTorch's DataLoader do
// not.
void judge_shared(const CheckInput& input, const std::vector<ToldHost>& hosts,
                  Judgement* judgement) {
  std::vector<HostFact> low;
  for (const ToldHost& one : hosts) {
    const wire::MemoryFacts& memory = one.told->memory;
    if (one.ranks() < 2 || memory.shm_free_bytes >= kLeastShmOfRank * one.ranks_to_come()) continue;
    if (!has_torch(*one.told) && !uses_gpus(input, *one.host)) continue;
    low.emplace_back(one.host->name, format_bytes(memory.shm_free_bytes) + " of " +
                                         format_bytes(memory.shm_bytes) + " free for " +
                                         count_of(one.ranks_to_come(), "rank"));
  }
  add_grouped("shm-small", low, judgement);
}

void judge_memory(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "memory", judgement);
  judge_free(hosts, judgement);
  judge_shared(input, hosts, judgement);
}

}  // namespace

const Probe kMemoryProbe{
    "memory",
    "the memory that each host has available, within its cgroups, and the room in /dev/shm",
    {{"memory-low", Severity::kHarms, "less than 256 MiB are available for each rank of the host",
      "the kernel would end ranks for want of memory",
      "see 'ssh $HOST ps -eo rss,pid,user,args --sort=-rss | head' and end what is not needed, or "
      "give the host fewer slots"},
     {"memory-limit", Severity::kHarms,
      "the cgroup of the agent allows less than 256 MiB for each rank of the host",
      "the kernel would end ranks for want of memory",
      "ask for more: sbatch --mem=0, docker run --memory=..., resources.limits.memory of a pod"},
     {"shm-small", Severity::kHarms,
      "several ranks of a host that use GPUs or PyTorch have less than 64 MiB free each in "
      "/dev/shm",
      "NCCL and PyTorch's DataLoader share memory there, and fail with 'No space left on device' "
      "or "
      "a bus error",
      "ssh $HOST sudo mount -o remount,size=50% /dev/shm; in a container --shm-size=8g or "
      "--ipc=host"}},
    judge_memory};

}  // namespace hv::launcher
