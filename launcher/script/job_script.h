// The job script: directives for the scheduler, modules, and the hvrun line with what guards it.
// SPDX-License-Identifier: Apache-2.0
//
// Pure: values in, text out. One file for each scheduler (slurm_script.cc, ...) and a line in
// job_script.cc. Every word that the shell reads is quoted; what a directive holds has been checked
// (directive.h).
#pragma once

#include <string>
#include <vector>

#include "launcher/script/job_request.h"
#include "launcher/script/script_body.h"
#include "launcher/script/script_plan.h"
#include "launcher/script/site.h"

namespace hv::launcher {

// What a scheduler's file makes of a job.
struct SchedulerPart {
  std::string prefix;                   // "#SBATCH"
  std::vector<std::string> directives;  // "--nodes=4"
  std::vector<std::string> hvrun_options;
  std::string preparation;  // lines of the shell before all else
  std::optional<Guard> guard;
};

SchedulerPart slurm_part(const JobRequest& request, const Site& site, const ScriptPlan& plan);
SchedulerPart pbs_part(const JobRequest& request, const Site& site, const ScriptPlan& plan);
SchedulerPart lsf_part(const JobRequest& request, const Site& site, const ScriptPlan& plan);

// Words of the hvrun in the script, without "hvrun" itself.
std::vector<std::string> hvrun_words(const JobRequest& request, const ScriptPlan& plan,
                                     const SchedulerPart& part);

SchedulerPart scheduler_part(const JobRequest& request, const Site& site, const ScriptPlan& plan);
std::string job_script(const JobRequest& request, const Site& site, const ScriptPlan& plan);

// --job-name, else made from the name of the script or program; at most so many bytes.
std::string job_name(const JobRequest& request, std::size_t most_bytes);
// Where whole nodes have more GPUs than the ranks use: how many are requested, and why. Empty: none
// is left over.
std::string spare_gpus_note(const ScriptPlan& plan);
// The site's gpu_request for that many.
std::string gpu_request(const Site& site, int gpus);
// How long before the end a job that comes back is warned when --signal does not say.
std::chrono::seconds warning_time(const JobRequest& request, const ScriptPlan& plan);

}  // namespace hv::launcher
