// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/common_environment.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <span>

#include "src/base/knob.h"
#include "src/base/name_pattern.h"
#include "src/base/text.h"
#include "src/contract/algorithms.h"
#include "src/contract/contract.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

// Variables that describe a host or a login: a rank has its own host's values. A lint test compares
// this list with hvrun(1) and docs/contract.md.
const std::vector<std::string>& host_variable_patterns() {
  static const std::vector<std::string> patterns{"HOME",
                                                 "USER",
                                                 "LOGNAME",
                                                 "SHELL",
                                                 "PWD",
                                                 "OLDPWD",
                                                 "SHLVL",
                                                 "_",
                                                 "MAIL",
                                                 "HOSTNAME",
                                                 "HOST",
                                                 "TMPDIR",
                                                 "TMP",
                                                 "TEMP",
                                                 "DISPLAY",
                                                 "WAYLAND_DISPLAY",
                                                 "XAUTHORITY",
                                                 "SSH_*",
                                                 "XDG_*",
                                                 "DBUS_*",
                                                 "KRB5CCNAME",
                                                 "CUDA_VISIBLE_DEVICES",
                                                 "NVIDIA_VISIBLE_DEVICES",
                                                 "NVIDIA_DRIVER_CAPABILITIES",
                                                 "NVIDIA_REQUIRE_*",
                                                 "ROCR_VISIBLE_DEVICES",
                                                 "HIP_VISIBLE_DEVICES",
                                                 "TERM_*",
                                                 "TMUX",
                                                 "TMUX_PANE",
                                                 "STY",
                                                 "WINDOWID",
                                                 "SLURMD_NODENAME",
                                                 "SLURM_STEP_GPUS",
                                                 "SLURM_JOB_GPUS"};
  return patterns;
}

// Variables that describe the one process that a scheduler has started, hvrun or an agent: no rank
// has them. The same lint test compares this list.
const std::vector<std::string>& step_variable_patterns() {
  static const std::vector<std::string> patterns{"SLURM_PROCID",
                                                 "SLURM_LOCALID",
                                                 "SLURM_NODEID",
                                                 "SLURM_TASK_PID",
                                                 "SLURM_STEP_*",
                                                 "SLURM_STEPID",
                                                 "SLURM_GTIDS",
                                                 "SLURM_CPU_BIND*",
                                                 "SLURM_MEM_BIND*",
                                                 "SLURM_LAUNCH_NODE_IPADDR",
                                                 "SLURM_SRUN_*",
                                                 "SLURMD_*",
                                                 "PMI_*",
                                                 "PMIX_*",
                                                 "OMPI_COMM_WORLD_*",
                                                 "HOROVOD_RANK",
                                                 "HOROVOD_SIZE",
                                                 "HOROVOD_LOCAL_RANK",
                                                 "HOROVOD_LOCAL_SIZE",
                                                 "HOROVOD_CROSS_RANK",
                                                 "HOROVOD_CROSS_SIZE",
                                                 "PBS_NODENUM",
                                                 "PBS_TASKNUM",
                                                 "PBS_VNODENUM"};
  return patterns;
}

// Parameters of the PMIx library: users set them, unlike the other PMIX_ variables.
constexpr std::string_view kPmixParameters = "PMIX_MCA_";

// The variables of hvrun's environment that ranks inherit. An hvrun inside a rank has a contract,
// which is not the one of its own ranks.
RankEnvironment inherited_variables(const Environment& own) {
  static const NamePatterns host_variables(host_variable_patterns());
  static const NamePatterns step_variables(step_variable_patterns());
  RankEnvironment result;
  for (const auto& [name, value] : own.all())
    if (name.starts_with(kPmixParameters) ||
        (!host_variables.has_match(name) && !step_variables.has_match(name) &&
         !is_contract_name(name)))
      result.set(name, value);
  return result;
}

// Variables that stay behind although users set them; the login sets no value of its own.
constexpr const char* kUserVariables[] = {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                                          "XDG_STATE_HOME"};
// Schedulers set these for each node of a job; elsewhere the user has set them.
constexpr const char* kNodeVariables[] = {
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "TEMP", "TMP", "TMPDIR"};
// "A, B and C".
std::string join_with_and(const std::vector<std::string>& names) {
  if (names.size() < 2) return join(names, "");
  return join({names.begin(), names.end() - 1}, ", ") + " and " + names.back();
}

// Sorted.
std::vector<std::string> user_variables_left_behind(const JobSpec& spec, const Environment& own) {
  const RankEnvironment exported = spec.environment.exports.resolve(own);
  std::vector<std::string> names;
  const auto add = [&](std::span<const char* const> candidates) {
    for (const char* name : candidates)
      if (own.get_filled(name) && !exported.has(name)) names.emplace_back(name);
  };
  add(kUserVariables);
  if (!is_in_scheduler_job(own)) add(kNodeVariables);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_in_scheduler_job(const Environment& own) {
  constexpr const char* kJobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"};
  return std::any_of(std::begin(kJobs), std::end(kJobs),
                     [&own](const char* name) { return own.has(name); });
}

CommonEnvironment common_environment(const JobSpec& spec, const Environment& own) {
  CommonEnvironment result;
  if (!spec.environment.clean_environment) result.variables = inherited_variables(own);

  // --lost-after is the ranks' limit, too, unless HVRUN_PEER_TIMEOUT is set.
  char lost_after[48];
  std::snprintf(lost_after, sizeof lost_after, "%.12g",
                std::chrono::duration<double>(spec.ending.lost_after).count());
  result.variables.set(kJobLostAfter, lost_after);

  const RankEnvironment exported = spec.environment.exports.resolve(own);
  for (const auto& [name, value] : exported.as_environment().all()) {
    result.variables.set(name, value);
    result.exported.insert(result.exported.end(), name);
  }

  // With --verbose ranks report stragglers, too.
  if (spec.report.verbose && !result.variables.as_environment().get_filled(kStragglerSeconds))
    result.variables.set(kStragglerSeconds, "60");

  for (const ProgramSpec& program : spec.programs)
    result.program_variables.push_back(program.exports.resolve(own));
  result.host_variables = host_variable_patterns();
  if (spec.environment.clean_environment) result.host_variables.push_back("PATH");
  return result;
}

std::vector<std::string> unmatched_exports(const JobSpec& spec, const Environment& own) {
  Exports all = spec.environment.exports;
  for (const ProgramSpec& program : spec.programs) all.add_all(program.exports);
  std::vector<std::string> lines;
  for (const std::string& pattern : all.unmatched_patterns(own))
    lines.push_back("-x '" + printable(pattern) + "' adds nothing: no variable that is set here " +
                    (pattern == "*" ? "is left for it" : "begins so"));
  return lines;
}

std::vector<std::string> variables_left_behind(const JobSpec& spec, const Environment& own) {
  if (spec.environment.clean_environment) return {};
  const std::vector<std::string> names = user_variables_left_behind(spec, own);
  if (names.empty()) return {};
  return {join_with_and(names) + word_for(names.size(), " is", " are") +
          " not passed on: ranks on other hosts have their own host's; to pass " +
          word_for(names.size(), "it", "them") + " on: -x " + join(names, " -x ")};
}

std::vector<std::string> overridden_variables(const JobSpec& spec, const Environment& own) {
  if (spec.environment.clean_environment || has_contract(own)) return {};
  std::vector<std::string> names;
  for (const std::string& name : contract_names())
    if (name != kMasterPort && own.get_filled(name)) names.push_back(name);
  if (names.empty()) return {};
  return {join_with_and(names) + word_for(names.size(), " has", " have") +
          " no effect: hvrun itself sets " + word_for(names.size(), "it", "them") +
          " for each rank"};
}

void check_knobs_of_ranks(const CommonEnvironment& environment) {
  const auto check = [](const RankEnvironment& ranks) {
    const KnobReader knobs(runtime_knobs(), ranks.as_environment());
    knobs.check_all();
    parse_algorithms(knobs.text("HVRUN_ALGORITHM"));
  };
  if (environment.program_variables.empty()) check(environment.variables);
  for (const RankEnvironment& program : environment.program_variables) {
    if (program.is_empty()) {
      check(environment.variables);
      continue;
    }
    RankEnvironment ranks = environment.variables;
    ranks.set_all(program);
    check(ranks);
  }
}

}  // namespace hv::launcher
