// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/login_node.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "launcher/commands/commands.h"
#include "launcher/facts/process_table.h"
#include "src/contract/contract.h"

namespace hv::launcher {
namespace {

// slurmd of other configurations, and that of this one where /proc hides other users' processes.
constexpr std::array kSignsOfSlurmd{"/run/slurmd.pid", "/run/slurm/slurmd.pid",
                                    "/sys/fs/cgroup/system.slice/slurmd.service",
                                    "/sys/fs/cgroup/system.slice/slurmstepd.scope"};
// /run/slurm/conf is what the controller sends to machines without a configuration of their own.
constexpr std::array kConfigurations{"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                     "/etc/slurm-llnl/slurm.conf"};

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// srun: its path. A Slurm in a directory of its own has its configuration there.
bool has_slurm_configuration(const std::string& srun, const Environment& environment) {
  if (const auto named = environment.get_filled("SLURM_CONF")) return is_there(*named);
  return std::any_of(kConfigurations.begin(), kConfigurations.end(), is_there) ||
         is_there(std::filesystem::path(srun).parent_path().parent_path() / "etc/slurm.conf");
}

bool runs_slurmd() {
  if (std::any_of(kSignsOfSlurmd.begin(), kSignsOfSlurmd.end(), is_there)) return true;
  const std::vector<ProcessEntry> processes = read_processes();
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessEntry& process) { return process.name == "slurmd"; });
}

}  // namespace

SlurmPresence find_slurm(const Environment& environment) {
  SlurmPresence slurm;
  const std::string srun = find_on_path("srun", environment);
  slurm.has_commands = !srun.empty() && !find_on_path("sbatch", environment).empty();
  slurm.has_configuration = slurm.has_commands && has_slurm_configuration(srun, environment);
  slurm.runs_jobs = slurm.has_configuration && runs_slurmd();
  return slurm;
}

bool is_machine_by_default(const HostList& hosts, const Environment& environment) {
  return hosts.this_machine && !environment.has("SLURM_JOB_ID") && !has_contract(environment);
}

std::vector<std::string> warnings_of_login_node(const SlurmPresence& slurm) {
  if (!slurm.has_commands || !slurm.has_configuration || slurm.runs_jobs) return {};
  return {
      "the ranks run on this machine, which looks like a login node: it has Slurm's commands, no "
      "slurmd, and hvrun runs in no job; for the cluster's nodes type 'salloc -N 2 hvrun ...', or "
      "write a job script by 'hvrun script' and give it to sbatch; -H localhost:N says that N "
      "ranks are meant for this machine"};
}

}  // namespace hv::launcher
