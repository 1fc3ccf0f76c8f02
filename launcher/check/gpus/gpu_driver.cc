// Is the driver of the hosts' GPUs of one branch, new enough, and awake?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/check_input.h"
#include "launcher/check/gpus/rank_gpus.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr double kLongStart_s = 2;

// "580" of "580.82.07": releases of one branch are for the same CUDA.
std::string branch_of(const std::string& version) { return version.substr(0, version.find('.')); }

std::string driver_in_words(const wire::Inventory& told) {
  return "driver " + printable(told.driver) +
         (told.cuda.empty() ? "" : " (CUDA " + printable(told.cuda) + ")");
}

// Of hosts whose ranks have GPUs, and whose driver has told its version.
std::map<std::size_t, const wire::Inventory*> drivers_of(const CheckInput& input) {
  std::map<std::size_t, const wire::Inventory*> drivers;
  for (const RankGpu& gpu : gpus_of_ranks(input))
    if (gpu.inventory != nullptr && !gpu.inventory->driver.empty())
      drivers[gpu.host] = gpu.inventory;
  return drivers;
}

void judge_driver_versions(const CheckInput& input, Judgement* judgement) {
  std::vector<std::pair<std::string, std::string>> branches, versions;
  std::map<std::string, std::string> a_version_of;
  for (const auto& [host, told] : drivers_of(input)) {
    const std::string& name = input.hosts[host].name;
    branches.emplace_back(name, branch_of(told->driver));
    versions.emplace_back(name, driver_in_words(*told));
    a_version_of.emplace(branches.back().second, told->driver);
  }
  const std::vector<FactGroup> groups = group_facts(branches);
  if (groups.size() < 2) return;
  judgement->add("gpu-drivers-differ", odd_hosts(groups), groups_as_text(group_facts(versions)),
                 {{"DRIVER", printable(a_version_of[groups[0].fact])}});
}

void judge_age(const CheckInput& input, Judgement* judgement) {
  std::vector<std::string> hosts;
  std::vector<std::pair<std::string, std::string>> facts;
  std::string wanted;
  for (const auto& [host, told] : drivers_of(input)) {
    const auto has = parse_integer(told->cuda.substr(0, told->cuda.find('.')));
    const std::optional<CudaOfTorch> torch = cuda_of_torch(input, host);
    if (!has || !torch || torch->major <= *has) continue;
    hosts.push_back(input.hosts[host].name);
    facts.emplace_back(hosts.back(), driver_in_words(*told) + ", PyTorch " + torch->version +
                                         " is built for CUDA " + std::to_string(torch->major));
    wanted = std::to_string(*has);
  }
  if (hosts.empty()) return;
  judgement->add("gpu-driver-too-old", hosts, groups_as_text(group_facts(facts)),
                 {{"CUDA", wanted}});
}

void judge_start(const CheckInput& input, Judgement* judgement) {
  std::map<std::size_t, double> starts;
  for (const RankGpu& gpu : gpus_of_ranks(input))
    if (gpu.told != nullptr && gpu.told->has_persistence == false &&
        gpu.inventory->start_s > kLongStart_s)
      starts[gpu.host] = gpu.inventory->start_s;
  std::vector<std::string> hosts;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [host, seconds] : starts) {
    hosts.push_back(input.hosts[host].name);
    facts.emplace_back(hosts.back(),
                       "the driver took " + format_duration(Seconds(seconds)) + " to start");
  }
  if (!hosts.empty()) judgement->add("gpu-asleep", hosts, groups_as_text(group_facts(facts)));
}

void judge_driver(const CheckInput& input, Judgement* judgement) {
  judge_driver_versions(input, judgement);
  judge_age(input, judgement);
  judge_start(input, judgement);
}

}  // namespace

const Probe kGpuDriverProbe{
    "gpu-driver",
    "the driver of ranks' GPUs: its version, the CUDA that it is for, and whether it sleeps while "
    "nobody uses them",
    {{"gpu-drivers-differ", Severity::kHarms,
      "drivers of the job's hosts are of different branches (580, 535); releases of one branch may "
      "differ",
      "what the older one lacks (CUDA, ways between GPUs) fails, or is slower, on its ranks alone",
      "have driver $DRIVER installed on $HOST, or leave $HOST out"},
     {"gpu-driver-too-old", Severity::kCannotStart,
      "the PyTorch of the job's program is built for a newer major version of CUDA than the host's "
      "driver is for",
      "it finds no GPU there",
      "have a newer driver installed on $HOST, or take a PyTorch for CUDA $CUDA: "
      "https://pytorch.org/get-started/previous-versions"},
     {"gpu-asleep", Severity::kHarms,
      "persistence mode is off, and the driver took more than 2 s to answer",
      "so does every first program on these GPUs, at each start of the job",
      "ssh $HOST sudo nvidia-smi -pm 1"}},
    judge_driver};

}  // namespace hv::launcher
