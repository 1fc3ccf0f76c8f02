// How many GPUs Slurm has given a job, from its variables.
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "launcher/allocation/scheduler.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kMostGpus = 1 << 20;

// "4", "a100:4", "gres/gpu:a100=4". nullopt: no such number, or a sum of several types.
std::optional<std::int64_t> number_of_gpus(const std::string& text) {
  const std::size_t before = text.find_last_of(":=");
  const auto number = parse_integer(before == std::string::npos ? text : text.substr(before + 1));
  if (!number || *number < 1 || *number > kMostGpus || text.find(',') != std::string::npos)
    return std::nullopt;
  return number;
}

std::optional<std::int64_t> gpus_in(const Environment& environment, const char* name) {
  const auto text = environment.get_filled(name);
  return text ? number_of_gpus(*text) : std::nullopt;
}

}  // namespace

// Slurm sets SLURM_GPUS_ON_NODE and SLURM_JOB_GPUS on the first node alone, so they describe all
// nodes only where the request is one for each node. salloc sets neither, and for --gres nothing.
GpusOfJob gpus_of_slurm_job(const Environment& environment) {
  if (slurm_components(environment) > 0) return {};  // these names are the first component's
  if (environment.has("SLURM_GPUS")) return {gpus_in(environment, "SLURM_GPUS").value_or(0), 0};
  if (environment.has("SLURM_GPUS_PER_TASK") || environment.has("SLURM_TRES_PER_TASK")) {
    const auto each = gpus_in(environment, "SLURM_GPUS_PER_TASK");
    const auto tasks = gpus_in(environment, "SLURM_NTASKS");
    return {each && tasks ? *each * *tasks : 0, 0};
  }
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"})
    if (const auto gpus = gpus_in(environment, name)) return {0, *gpus};
  const auto list = environment.get_filled("SLURM_JOB_GPUS");
  return {0, list ? static_cast<std::int64_t>(split(*list, ',').size()) : 0};
}

}  // namespace hv::launcher
