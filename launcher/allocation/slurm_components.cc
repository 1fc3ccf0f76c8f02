// The components of a heterogeneous Slurm job (sbatch: "hetjob"), each with nodes of its own. Any
// other job has variables without a suffix.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kMostComponents = 128;  // as Slurm has it (MAX_HET_JOB_COMPS)

}  // namespace

std::string suffix_of_slurm_component(int component) {
  return component < 0 ? "" : "_HET_GROUP_" + std::to_string(component);
}

// sbatch passes on the variables of the job in which it was called.
bool are_of_this_job(const Environment& environment, int components) {
  const std::string name = "SLURM_JOB_ID";
  if (!environment.has(name + suffix_of_slurm_component(0))) return true;
  for (int component = 0; component < components; ++component)
    if (environment.get(name + suffix_of_slurm_component(component)) == environment.get(name))
      return true;
  return false;
}

int slurm_components(const Environment& environment) {
  const auto size = parse_integer(environment.get_or("SLURM_HET_SIZE", "0")).value_or(0);
  if (size < 1) return 0;
  const int components = static_cast<int>(std::min(size, kMostComponents));
  return are_of_this_job(environment, components) ? components : 0;
}

std::map<std::string, int> slurm_component_of_nodes(const Environment& environment) {
  std::map<std::string, int> component_of;
  for (int component = 0; component < slurm_components(environment); ++component) {
    const std::string name = "SLURM_JOB_NODELIST" + suffix_of_slurm_component(component);
    const auto nodes = environment.get_filled(name);
    if (!nodes) continue;
    for (const HostEntry& node : parse_host_expression(*nodes, "$" + name).entries)
      component_of.emplace(node.name, component);
  }
  return component_of;
}

}  // namespace hv::launcher
