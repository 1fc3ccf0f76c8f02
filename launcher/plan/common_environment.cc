// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/common_environment.h"

#include <chrono>
#include <cstdio>

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
                                                 "NVIDIA_*",
                                                 "ROCR_*",
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
                                                 "PBS_NODENUM",
                                                 "PBS_TASKNUM",
                                                 "PBS_VNODENUM"};
  return patterns;
}

// The variables of hvrun's environment that ranks inherit. An hvrun inside a rank has a contract,
// which is not the one of its own ranks.
RankEnvironment inherited_variables(const Environment& own) {
  static const NamePatterns host_variables(host_variable_patterns());
  static const NamePatterns step_variables(step_variable_patterns());
  RankEnvironment result;
  for (const auto& [name, value] : own.all())
    if (!host_variables.has_match(name) && !step_variables.has_match(name) &&
        !is_contract_name(name))
      result.set(name, value);
  return result;
}

}  // namespace

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
