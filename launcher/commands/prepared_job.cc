// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/prepared_job.h"

#include <utility>

#include "launcher/allocation/scheduler.h"
#include "launcher/cli/knobs.h"
#include "launcher/commands/commands.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/mpi_wires.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

bool is_on_path(const std::string& program, const Environment& environment) {
  std::string reason;
  return !find_program(program, environment.get_or("PATH", ""), "/", &reason).empty();
}

bool is_ssh_meant(const JobSpec& spec) {
  return !spec.access.remote_shell.empty() || !spec.access.ssh_user.empty() ||
         !spec.access.ssh_identity_file.empty() || spec.access.ssh_port != 0;
}

// In a Slurm job srun reaches all nodes; SSH often reaches none.
void choose_spawner(const HostList& list, const Environment& environment, JobSpec* spec) {
  const bool can_be_srun = are_nodes_of_slurm_job(list, environment);
  if (spec->access.spawner != SpawnerChoice::kSsh && !is_ssh_meant(*spec))
    refuse_strangers_to_slurm_job(list, environment);
  if (spec->access.spawner == SpawnerChoice::kSrun && !can_be_srun)
    throw Error(ErrorKind::kUsage,
                "--spawner srun reaches the nodes of a Slurm job, and not all of these hosts are "
                "nodes of one in which hvrun runs",
                "run hvrun inside sbatch or salloc, and leave out -H and --hostfile");
  if (spec->access.spawner == SpawnerChoice::kByItself && can_be_srun && !is_ssh_meant(*spec) &&
      is_on_path("srun", environment))
    spec->access.spawner = SpawnerChoice::kSrun;
}

}  // namespace

PreparedJob prepare_job(LaunchCommand command, Environment environment) {
  JobSpec& spec = command.spec;
  print_warnings(command.horovod.warnings);
  for (const Export& variable : command.horovod.variables.list())
    environment.set(variable.name, variable.value);
  spec.hosts.way_is_stated = is_ssh_meant(spec) || spec.access.spawner != SpawnerChoice::kByItself;
  HostList list = find_hosts(spec.hosts, environment).list;
  choose_spawner(list, environment, &spec);
  if (spec.environment.mpi_first) print_warnings(put_mpi_first(environment, &spec));
  print_warnings(ignored_variables(spec, environment));
  print_warnings(unmatched_exports(spec, environment));
  if (spec.report.dry_run != DryRun::kOffline) {
    check_stated_slots(spec, list);
    configure_log(spec.report.verbose ? LogLevel::kInfo : LogLevel::kWarn, "hvrun");
  }
  return {std::move(spec), std::move(list), std::move(environment)};
}

}  // namespace hv::launcher
