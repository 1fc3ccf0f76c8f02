// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/rank_environment.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "src/base/error.h"
#include "src/base/knob.h"
#include "src/base/name_pattern.h"
#include "src/base/text.h"
#include "src/contract/algorithms.h"
#include "src/contract/contract.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

void check_export_name(const std::string& word, const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) {
    throw Error(ErrorKind::kUsage, "-x '" + printable(word) + "' names no variable",
                "expected NAME, NAME=VALUE or 'PREFIX_*'");
  }
  const auto& taken = contract_names();
  if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
    throw Error(ErrorKind::kUsage,
                "-x " + printable(name) + ": hvrun itself sets this variable for each rank",
                name == "MASTER_PORT" ? "use --master-port" : "leave it out");
  }
}

// What -x adds. A name that is not set here is an error for NAME, and nothing for a pattern.
void apply_export(const std::string& word, const Environment& own,
                  std::map<std::string, std::string>* entries) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  check_export_name(word, name);
  if (equals != std::string::npos) {
    (*entries)[name] = word.substr(equals + 1);
  } else if (name.back() == '*') {
    for (const auto& [candidate, value] : own.all()) {
      const auto& taken = contract_names();
      const bool is_contract = std::find(taken.begin(), taken.end(), candidate) != taken.end();
      if (matches_pattern(candidate, name) && !is_contract) (*entries)[candidate] = value;
    }
  } else if (const auto value = own.get(name)) {
    (*entries)[name] = *value;
  } else {
    throw Error(ErrorKind::kUsage, "-x " + printable(name) + ": this variable is not set here",
                "set it, or write -x " + name + "=VALUE");
  }
}

// Names (or PREFIX_*) that describe a host or a login and so do not travel; documented in hvrun(1)
// and docs/contract.md, which a lint test compares.
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

// Names (or PREFIX_*) that describe the one process that a scheduler has started, hvrun or an
// agent: no rank has them. Documented with those.
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

}  // namespace

std::vector<std::string> unmatched_exports(const JobSpec& spec, const Environment& own) {
  std::vector<std::string> words = spec.exports, unmatched;
  for (const ProgramSpec& program : spec.programs)
    words.insert(words.end(), program.exports.begin(), program.exports.end());
  for (const std::string& word : words) {
    if (word.empty() || word.back() != '*' || word.find('=') != std::string::npos) continue;
    std::map<std::string, std::string> entries;
    apply_export(word, own, &entries);
    if (entries.empty())
      unmatched.push_back("-x '" + printable(word) +
                          "' adds nothing: no variable that is set here " +
                          (word == "*" ? "is left for it" : "begins so"));
  }
  return unmatched;
}

CommonEnvironment common_environment(const JobSpec& spec, const Environment& own) {
  CommonEnvironment result;
  const std::vector<std::string>& patterns = host_variable_patterns();
  std::map<std::string, std::string> entries;
  if (!spec.clean_environment) {
    for (const auto& [name, value] : own.all()) {
      if (!matches_any(name, patterns) && !matches_any(name, step_variable_patterns()))
        entries[name] = value;
    }
  }
  // A contract that hvrun itself was born with (hvrun inside a rank) is not the ranks'.
  for (const std::string& name : contract_names()) entries.erase(name);

  // What --lost-after says is what ranks go by, too, unless HVRUN_PEER_TIMEOUT says otherwise.
  char lost_after[48];
  std::snprintf(lost_after, sizeof lost_after, "%.12g",
                std::chrono::duration<double>(spec.lost_after).count());
  entries[kJobLostAfter] = lost_after;

  std::map<std::string, std::string> exported;
  for (const std::string& word : spec.exports) apply_export(word, own, &exported);
  for (const auto& [name, value] : exported) {
    entries[name] = value;
    result.exported.push_back(name);
  }

  // Who asks hvrun to tell more is told by the ranks, too, for whom they wait.
  if (spec.verbose && entries[kStragglerSeconds].empty()) entries[kStragglerSeconds] = "60";

  for (const auto& [name, value] : entries) result.entries.push_back(name + "=" + value);
  for (const ProgramSpec& program : spec.programs) {
    std::map<std::string, std::string> own_entries;
    for (const std::string& word : program.exports) apply_export(word, own, &own_entries);
    result.of_programs.emplace_back();
    for (const auto& [name, value] : own_entries)
      result.of_programs.back().push_back(name + "=" + value);
  }
  result.host_variables = patterns;
  if (spec.clean_environment) result.host_variables.push_back("PATH");
  // An exported name beats the host's own value; the agent lets common entries win over host
  // variables.
  return result;
}

void check_knobs_of_ranks(const JobSpec& spec, const Environment& own) {
  const CommonEnvironment common = common_environment(spec, own);
  std::vector<std::vector<std::string>> of_programs = common.of_programs;
  if (of_programs.empty()) of_programs.emplace_back();
  for (const std::vector<std::string>& more : of_programs) {
    Environment ranks = Environment::from_entries(common.entries);
    const Environment own_of_program = Environment::from_entries(more);
    for (const auto& [name, value] : own_of_program.all()) ranks.set(name, value);
    const KnobReader knobs(runtime_knobs(), ranks);
    knobs.check_all();
    parse_algorithms(knobs.text("HVRUN_ALGORITHM"));
  }
}

}  // namespace hv::launcher
