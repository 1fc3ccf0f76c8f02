// Do the GPUs work, and have they worked without errors?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "launcher/check/gpus/rank_gpus.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kRecent_s = 24 * 3600;

// Of NVIDIA's list of Xids those that speak of the GPU, its links or its firmware; the others are
// mostly a program's own doing.
struct KindOfXid {
  std::uint32_t number;
  const char* words;
};
constexpr KindOfXid kSerious[] = {{48, "uncorrected memory error"},
                                  {61, "its microcontroller stopped"},
                                  {62, "its microcontroller halted"},
                                  {64, "a faulty page or row could not be retired"},
                                  {74, "NVLink error"},
                                  {79, "it fell off the bus"},
                                  {92, "many corrected memory errors"},
                                  {95, "uncontained memory error"},
                                  {119, "its firmware did not answer"},
                                  {120, "its firmware failed"},
                                  {140, "unrecovered memory error"},
                                  {145, "NVLink error"},
                                  {149, "NVLink error"}};

void judge_missed(const CheckInput& input, Judgement* judgement) {
  GpuFindings lost(input), unset(input), worn(input), pending(input);
  for (const RankGpu& gpu : missed_gpus(input)) {
    if (gpu.told == nullptr) continue;
    const wire::GpuHealth& health = gpu.told->health;
    const std::string where = "(" + gpu.facts.pci_address + ")";
    if (health.is_lost) {
      lost.add(gpu, where + " has fallen off the bus");
    } else if (health.needs_reset) {
      unset.add(gpu, where + " is refused by the driver until it is reset");
    } else if (health.remap_failed) {
      worn.add(gpu, where + " has a faulty row of memory and none to take its place");
    } else if (health.is_pending && health.volatile_errors > 0) {
      pending.add(gpu, where + " has had " +
                           count_of(health.volatile_errors, "uncorrected memory error") +
                           ", whose repair waits for a reset");
    }
  }
  lost.tell("gpu-lost", judgement);
  unset.tell("gpu-needs-reset", judgement);
  worn.tell("gpu-beyond-repair", judgement);
  pending.tell("gpu-repair-pending", judgement);
}

// The gravest that is recent, by the newest of each number.
void add_xid(const RankGpu& gpu, GpuFindings* findings) {
  for (auto xid = gpu.told->xids.rbegin(); xid != gpu.told->xids.rend(); ++xid) {
    const auto* const kind =
        std::find_if(std::begin(kSerious), std::end(kSerious),
                     [xid](const KindOfXid& one) { return one.number == xid->number; });
    if (kind == std::end(kSerious) || xid->seconds_ago > kRecent_s) continue;
    findings->add(gpu, "had Xid " + std::to_string(xid->number) + " (" + kind->words + ") " +
                           format_duration(std::chrono::seconds(xid->seconds_ago)) + " ago");
    return;
  }
}

void judge_used(const CheckInput& input, Judgement* judgement) {
  GpuFindings errors(input), xids(input), slow(input);
  for (const RankGpu& gpu : gpus_of_ranks(input)) {
    if (gpu.told == nullptr) continue;
    if (gpu.told->health.volatile_errors > 0 && gpu.facts.fault.empty())
      errors.add(gpu, "has had " +
                          count_of(gpu.told->health.volatile_errors, "uncorrected memory error") +
                          " since the driver was loaded");
    add_xid(gpu, &xids);
    if (!gpu.told->slowdown.empty())
      slow.add(gpu, "is slowed down by " + printable(gpu.told->slowdown));
  }
  errors.tell("gpu-memory-errors", judgement);
  xids.tell("gpu-xid", judgement);
  slow.tell("gpu-slowed", judgement);
}

void add_health_gaps(const CheckInput& input, Judgement* judgement) {
  if (input.ranks_may_run) return;  // a log that only root may read is no news beside it
  std::vector<std::pair<std::string, std::string>> reasons;
  std::size_t last = input.hosts.size();
  for (const RankGpu& gpu : gpus_of_ranks(input)) {
    if (gpu.inventory == nullptr || gpu.inventory->xid_problem.empty() || gpu.host == last)
      continue;
    last = gpu.host;
    reasons.emplace_back(input.hosts[gpu.host].name, gpu.inventory->xid_problem);
  }
  for (const FactGroup& group : group_facts(reasons))
    judgement->not_probed(group.hosts, "Xid errors in the kernel's log: " + group.fact);
}

void judge_health(const CheckInput& input, Judgement* judgement) {
  judge_missed(input, judgement);
  judge_used(input, judgement);
  add_health_gaps(input, judgement);
}

constexpr char kNoRank[] =
    "there is a rank less, one without a GPU or, where the launch did not ask the driver, one that "
    "has this GPU";

}  // namespace

const Probe kGpuHealthProbe{
    "gpu-health",
    "whether GPUs that ranks would have work: lost ones, memory errors (ECC), Xid errors in the "
    "kernel's log since the driver was loaded, and clocks held down",
    {{"gpu-lost", Severity::kHarms,
      "a GPU that a rank has, or would have otherwise, does not answer its driver any more",
      kNoRank, "restart $HOST; if it stays lost, have it reseated or replaced"},
     {"gpu-needs-reset", Severity::kHarms,
      "the driver refuses a GPU that a rank has, or would have otherwise, until it is reset",
      kNoRank, "once nothing runs there: ssh $HOST sudo nvidia-smi --gpu-reset -i $GPU"},
     {"gpu-beyond-repair", Severity::kHarms,
      "a GPU that a rank has, or would have otherwise, has no spare memory rows left for a faulty "
      "one",
      kNoRank, "have it replaced; until then leave it out by gpus= on $HOST's line"},
     {"gpu-repair-pending", Severity::kHarms,
      "a GPU that a rank has, or would have otherwise, has had uncorrected memory errors, whose "
      "repair "
      "waits "
      "for its reset",
      kNoRank, "once nothing runs there: ssh $HOST sudo nvidia-smi --gpu-reset -i $GPU"},
     {"gpu-memory-errors", Severity::kHarms,
      "a rank's GPU has had an uncorrected memory error (ECC) since the driver was loaded",
      "the next one ends its rank, and with it the job",
      "have it tested: ssh $HOST dcgmi diag -r 3; or leave it out by gpus= on $HOST's line"},
     {"gpu-xid", Severity::kHarms,
      "the kernel's log has an Xid error of a rank's GPU, of its hardware, links or firmware (48, "
      "61, 62, 64, 74, 79, 92, 95, 119, 120, 140, 145, 149), within 24 h and since the driver was "
      "loaded",
      "what has failed once ends ranks when it fails again",
      "see 'ssh $HOST sudo dmesg | grep Xid', and reset it once nothing runs there: ssh $HOST sudo "
      "nvidia-smi --gpu-reset -i $GPU"},
     {"gpu-slowed", Severity::kHarms,
      "the hardware holds a rank's GPU's clocks down, for heat or for the power supply",
      "every step of the job waits for it",
      "see its fans and power: ssh $HOST nvidia-smi -q -d "
      "PERFORMANCE,TEMPERATURE,POWER"}},
    judge_health};

}  // namespace hv::launcher
