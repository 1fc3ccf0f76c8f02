// May the ranks use their GPUs, and are they alone there?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/check/gpus/rank_gpus.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 30;
constexpr std::uint64_t kMostShare = 10;  // per cent of a GPU's memory
constexpr std::uint32_t kMostBusy = 10;   // per cent

// By which several processes share a GPU that takes but one.
bool is_mps(const wire::GpuProcess& process) {
  return process.name.rfind("nvidia-cuda-mps", 0) == 0;
}

std::string process_in_words(const wire::GpuProcess& process) {
  return (process.name.empty() ? "a process" : printable(process.name)) + " (pid " +
         std::to_string(process.pid) + ")";
}

std::string users_in_words(const wire::GpuUse& use) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (const wire::GpuProcess& process : use.processes) {
    if (names.size() == kNamed) {
      names.push_back(std::to_string(use.processes.size() - kNamed) + " more");
      break;
    }
    names.push_back(process_in_words(process));
  }
  return listed(names);
}

std::uint64_t gpu_memory(const RankGpu& gpu) {
  return gpu.part != nullptr ? gpu.part->memory_bytes : gpu.told->memory_bytes;
}

// Why it counts as busy; "": it does not. A sleeping GPU may tell of use that is its own waking.
std::string busy_in_words(const RankGpu& gpu, const wire::GpuUse& use) {
  std::vector<std::string> words;
  const std::uint64_t used = use.used_bytes.value_or(0);
  const std::uint64_t all = gpu_memory(gpu);  // 0: not told
  if (used > kMostBytes || (all > 0 && used > all / 100 * kMostShare))
    words.push_back("has " + format_bytes(used) + " of its memory in use");
  const bool is_awake = gpu.told->has_persistence.value_or(false) || !use.processes.empty();
  if (is_awake && use.busy_percent.value_or(0) > kMostBusy)
    words.push_back("is " + std::to_string(*use.busy_percent) + " % busy");
  const std::string users = users_in_words(use);
  return words.empty() || users.empty() ? listed(words) : listed(words) + " by " + users;
}

void judge_modes_and_use(const CheckInput& input, Judgement* judgement) {
  GpuFindings closed(input), taken(input), busy(input);
  for (const RankGpu& gpu : gpus_of_ranks(input)) {
    const wire::GpuUse* const use = gpu.use();
    if (use == nullptr) continue;
    const bool is_shared = std::any_of(use->processes.begin(), use->processes.end(), is_mps);
    const bool takes_one = gpu.told->compute_mode == "exclusive" && !is_shared;
    if (gpu.told->compute_mode == "prohibited") {
      closed.add(gpu, "is in compute mode 'prohibited'");
    } else if (takes_one && !use->processes.empty()) {
      taken.add(gpu, "takes one process, and has " + users_in_words(*use));
    } else if (takes_one && gpu.ranks.size() > 1) {
      taken.add(gpu, "takes one process, and is of " + std::to_string(gpu.ranks.size()) + " ranks");
    } else if (const std::string words = busy_in_words(gpu, *use); !words.empty()) {
      busy.add(gpu, words);
    }
  }
  closed.tell("gpu-prohibited", judgement);
  taken.tell("gpu-taken", judgement);
  busy.tell("gpu-busy", judgement);
}

void judge_mig(const CheckInput& input, Judgement* judgement) {
  GpuFindings empty(input);
  for (const RankGpu& gpu : missed_gpus(input))
    if (gpu.told != nullptr && gpu.told->has_mig_mode && !gpu.facts.is_mig &&
        !gpu.told->health.is_lost && !gpu.told->health.needs_reset)
      empty.add(gpu, "is in MIG mode, without a MIG device that this user may open");
  empty.tell("mig-without-device", judgement);
  std::map<std::size_t, std::string> kinds;  // by host
  for (const RankGpu& gpu : gpus_of_ranks(input)) {
    const std::string kind = gpu.facts.is_mig ? "MIG devices" : "whole GPUs";
    std::string& known = kinds[gpu.host];
    known = known.empty() || known == kind ? kind : "both MIG devices and whole GPUs";
  }
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [host, kind] : kinds) facts.emplace_back(input.hosts[host].name, kind);
  const std::vector<FactGroup> groups = group_facts(facts);
  if (groups.size() > 1 || (groups.size() == 1 && groups[0].fact.rfind("both", 0) == 0))
    judgement->add("mig-differs", groups.size() > 1 ? odd_hosts(groups) : groups[0].hosts,
                   groups_as_text(groups));
}

void judge_use(const CheckInput& input, Judgement* judgement) {
  judge_modes_and_use(input, judgement);
  judge_mig(input, judgement);
}

}  // namespace

const Probe kGpuUseProbe{
    "gpu-use",
    "who uses ranks' GPUs already, their compute mode, and MIG mode",
    {{"gpu-prohibited", Severity::kCannotStart, "a rank's GPU is in compute mode 'prohibited'",
      "CUDA finds no GPU that it may use there",
      "ssh $HOST sudo nvidia-smi -i $GPU --compute-mode=DEFAULT"},
     {"gpu-taken", Severity::kCannotStart,
      "a rank's GPU is in compute mode 'exclusive', and a process has it, or several ranks would, "
      "and there is no MPS",
      "CUDA refuses every process but the first",
      "end what uses it (ssh $HOST nvidia-smi -i $GPU), or: ssh $HOST sudo nvidia-smi -i $GPU "
      "--compute-mode=DEFAULT"},
     {"gpu-busy", Severity::kHarms,
      "others use more than 1 GiB or 10 % of a rank's GPU's memory, or it computes for more than "
      "10 % of the time",
      "its rank gets the rest of its memory and time, and all ranks wait for it",
      "see who uses it, and end it, or leave that GPU out by gpus= on $HOST's line: ssh $HOST "
      "nvidia-smi -i $GPU"},
     {"mig-without-device", Severity::kHarms,
      "a GPU that a rank would have otherwise is in MIG mode and has no MIG device that this user "
      "may open",
      "CUDA cannot use it", "ssh $HOST sudo nvidia-smi -i $GPU -mig 0"},
     {"mig-differs", Severity::kHarms, "some ranks have MIG devices, and others whole GPUs",
      "each step waits for the slowest, and NCCL joins MIG devices by no peer access",
      "have MIG mode switched alike (ssh $HOST sudo nvidia-smi -mig 0), or name GPUs of one kind "
      "by "
      "gpus= on the hosts' lines"}},
    judge_use};

}  // namespace hv::launcher
