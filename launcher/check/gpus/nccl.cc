// Do ranks with GPUs load NCCL of one version?
// SPDX-License-Identifier: Apache-2.0

#include "launcher/check/check_input.h"
#include "launcher/check/gpus/rank_gpus.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"

namespace hv::launcher {
namespace {

// Of several versions on a host, for programs of several environments, each counts.
void judge_nccl(const CheckInput& input, Judgement* judgement) {
  std::vector<std::pair<std::string, std::string>> facts;
  bool has_several = false;
  for (const std::size_t i : hosts_with_gpus(input)) {
    const std::set<std::string> versions =
        versions_of(input, i, {"nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"});
    if (versions.empty()) continue;
    has_several |= versions.size() > 1;
    facts.emplace_back(input.hosts[i].name, listed({versions.begin(), versions.end()}));
  }
  std::vector<FactGroup> groups = group_facts(facts);
  if (groups.empty() || (groups.size() == 1 && !has_several)) return;
  const std::string usual = groups[0].fact.substr(0, groups[0].fact.find_first_of(", "));
  const std::vector<std::string> hosts = groups.size() > 1 ? odd_hosts(groups) : groups[0].hosts;
  for (FactGroup& group : groups) group.fact = "NCCL " + group.fact;
  judgement->add("nccl-differs", hosts, groups_as_text(groups), {{"VERSION", usual}});
}

}  // namespace

const Probe kNcclProbe{
    "nccl",
    "the version of NCCL in the Python environments of the job's programs, where ranks have GPUs",
    {{"nccl-differs", Severity::kCannotStart,
      "ranks with GPUs would load NCCL of different versions, as their Python environments have it",
      "NCCL refuses a communicator of several versions",
      "in the environment of $HOST: pip install nvidia-nccl-cu13==$VERSION (-cu12 for CUDA 12)"}},
    judge_nccl};

}  // namespace hv::launcher
