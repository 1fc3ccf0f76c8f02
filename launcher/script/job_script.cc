// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_script.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::chrono::seconds kWarning{60};

// What the partition is, for who reads the script: "4 x NVIDIA V100, 40 cores, 160 GB".
std::string hardware_of(const Partition& partition) {
  std::vector<std::string> parts;
  if (const int gpus = partition.gpus.value_or(0); gpus > 0)
    parts.push_back(std::to_string(gpus) + " x " +
                    (partition.gpu_model.empty() ? "GPU" : partition.gpu_model));
  if (partition.cores > 0) parts.push_back(std::to_string(partition.cores) + " cores");
  if (partition.memory_gb > 0) parts.push_back(std::to_string(partition.memory_gb) + " GB");
  return join(parts, ", ");
}

std::string header(const Site& site, const ScriptPlan& plan) {
  const std::string hardware = hardware_of(plan.partition), note = spare_gpus_note(plan);
  return "#!/bin/bash\n# Written by 'hvrun script' for site " + site.name + ", partition " +
         plan.partition.name + (hardware.empty() ? "" : ": " + hardware + " a node") + ".\n" +
         (note.empty() ? "" : "# " + note + ".\n");
}

// Purged first, so that the job has what it had when it was tried, whatever was loaded at sbatch.
std::string modules(const JobRequest& request, const Site& site, const Partition& partition) {
  std::vector<std::string> names = site.modules;
  names.insert(names.end(), partition.modules.begin(), partition.modules.end());
  names.insert(names.end(), request.modules.begin(), request.modules.end());
  if (names.empty()) return "";
  std::string text = "module purge\n";
  for (const std::string& name : names) text += "module load " + shell_quote(name) + "\n";
  return text;
}

std::vector<std::string> option_words(const JobRequest& request, const ScriptPlan& plan,
                                      const SchedulerPart& part) {
  std::vector<std::string> words = part.hvrun_options;
  if (plan.gpus_per_rank > 1)
    words.insert(words.end(), {"--gpus-per-rank", std::to_string(plan.gpus_per_rank)});
  words.insert(words.end(), request.hvrun.typed.begin(), request.hvrun.typed.end());
  return words;
}

std::string hvrun_line(const JobRequest& request, const ScriptPlan& plan,
                       const SchedulerPart& part) {
  std::string line = "hvrun";
  for (const std::string& word : option_words(request, plan, part)) line += " " + shell_quote(word);
  // The guard of a job that comes back counts the runs in $restarts.
  if (!request.hvrun.output_directory.empty())
    line += " --output-dir " + shell_quote(request.hvrun.output_directory) + "/run.\"$restarts\"";
  line += " --";
  for (const std::string& word : request.program) line += " " + shell_quote(word);
  return line;
}

}  // namespace

std::string job_name(const JobRequest& request, std::size_t most_bytes) {
  if (!request.job_name.empty()) return request.job_name;
  const std::string& file =
      request.hvrun.main_file.empty() ? request.program[0] : request.hvrun.main_file;
  std::string name = file.substr(file.rfind('/') + 1);
  for (const std::string_view suffix : {".py", ".sh"})
    if (name.size() > suffix.size() && name.ends_with(suffix))
      name.erase(name.size() - suffix.size());
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
                   .find(c) == std::string_view::npos;
      },
      '_');
  // PBS wants a letter first, and no directive takes a hyphen there.
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name.insert(0, "job_");
  return name.substr(0, most_bytes);
}

std::string spare_gpus_note(const ScriptPlan& plan) {
  const bool is_whole = plan.partition.is_exclusive && plan.partition.gpus;
  const int each = is_whole ? *plan.partition.gpus : plan.gpus_per_node();
  const std::int64_t used = std::int64_t{plan.ranks} * plan.gpus_per_rank;
  const std::int64_t taken = std::int64_t{plan.nodes} * each;
  if (used == 0 || taken <= used) return "";
  return count_of(plan.ranks, "rank uses ", "ranks use ") + std::to_string(used) + " of the " +
         std::to_string(taken) + " GPUs of this job: it has " + count_of(plan.nodes, "node") +
         (is_whole ? " of its own with " : " with ") + std::to_string(each) + " each";
}

std::string gpu_request(const Site& site, int gpus) {
  std::string text = site.gpu_request;
  const std::string name = "{gpus}";
  text.replace(text.find(name), name.size(), std::to_string(gpus));
  return text;
}

std::chrono::seconds warning_time(const JobRequest& request, const ScriptPlan& plan) {
  if (request.signal) return request.signal->before;
  return plan.time ? std::min(kWarning, std::max(*plan.time / 2, std::chrono::seconds(1)))
                   : kWarning;
}

SchedulerPart scheduler_part(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  if (site.scheduler == BatchScheduler::kPbs) return pbs_part(request, site, plan);
  if (site.scheduler == BatchScheduler::kLsf) return lsf_part(request, site, plan);
  return slurm_part(request, site, plan);
}

std::vector<std::string> hvrun_words(const JobRequest& request, const ScriptPlan& plan,
                                     const SchedulerPart& part) {
  std::vector<std::string> words = option_words(request, plan, part);
  if (!request.hvrun.output_directory.empty())
    words.insert(words.end(), {"--output-dir", request.hvrun.output_directory});
  words.emplace_back("--");
  words.insert(words.end(), request.program.begin(), request.program.end());
  return words;
}

std::string job_script(const JobRequest& request, const Site& site, const ScriptPlan& plan) {
  SchedulerPart part = scheduler_part(request, site, plan);
  for (const auto* more : {&site.options, &plan.partition.options, &request.options})
    part.directives.insert(part.directives.end(), more->begin(), more->end());
  std::string text = header(site, plan);
  for (const std::string& directive : part.directives) text += part.prefix + " " + directive + "\n";
  const std::string loading = modules(request, site, plan.partition);  // not made for set -u
  text += loading.empty() ? "set -eu\n" : "set -e\n" + loading + "set -u\n";
  text += part.preparation;
  return text + script_body(hvrun_line(request, plan, part), part.guard);
}

}  // namespace hv::launcher
