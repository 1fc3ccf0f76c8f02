// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/prepared_job.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/scheduler.h"
#include "launcher/cli/knobs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/login_node.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/mpi_wires.h"
#include "launcher/spawn/resolve.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

bool has_ssh_options(const JobSpec& spec) {
  return !spec.access.remote_shell.empty() || !spec.access.ssh_user.empty() ||
         !spec.access.ssh_identity_file.empty() || spec.access.ssh_port != 0;
}

// How long the name service may take over names that choose among hosts.
constexpr auto kMostForNames = std::chrono::seconds(1);

std::vector<std::vector<std::string>> look_up(const std::vector<std::string>& names) {
  return resolve_or_own(names, kMostForNames, own_hostname());
}

// In a Slurm job srun reaches all nodes; SSH often reaches none. The nodes get Slurm's names.
void choose_spawner(HostList* hosts, const Environment& environment, JobSpec* spec) {
  if (spec->access.spawner != SpawnerChoice::kSsh && !has_ssh_options(*spec)) {
    *hosts = with_slurm_names(std::move(*hosts), environment, look_up);
    refuse_strangers_to_slurm_job(*hosts, environment);
  }
  const bool can_be_srun = are_nodes_of_slurm_job(*hosts, environment);
  if (spec->access.spawner == SpawnerChoice::kSrun && !can_be_srun)
    throw Error(ErrorKind::kUsage,
                "--spawner srun reaches the nodes of a Slurm job, and not all of these hosts are "
                "nodes of one in which hvrun runs",
                "run hvrun inside sbatch or salloc, and leave out -H and --hostfile");
  if (spec->access.spawner == SpawnerChoice::kAuto && can_be_srun && !has_ssh_options(*spec) &&
      !find_on_path("srun", environment).empty())
    spec->access.spawner = SpawnerChoice::kSrun;
}

bool is_reached_by_ssh(const JobSpec& spec, const HostTarget& target) {
  return spec.access.spawner != SpawnerChoice::kSrun && !target.is_local;
}

// Options for logins that no host needs: Horovod's users give a port to this machine, too.
std::vector<std::string> warnings_of_unused_login(const JobSpec& spec,
                                                  const Environment& environment) {
  const AccessSpec& access = spec.access;
  std::vector<std::string> unused;
  if (access.ssh_port != 0) unused.push_back("-p " + std::to_string(access.ssh_port));
  if (!access.ssh_identity_file.empty())
    unused.push_back("-i " + printable(access.ssh_identity_file));
  if (!access.ssh_user.empty()) unused.push_back("-l " + printable(access.ssh_user));
  // A site may set HVRUN_RSH for all jobs.
  if (access.remote_shell != environment.get_or("HVRUN_RSH", ""))
    unused.push_back("--rsh " + printable(access.remote_shell));
  if (unused.empty()) return {};
  return {join(unused, ", ") + word_for(unused.size(), " has", " have") +
          " no effect, because hvrun logs in to no host"};
}

// What is set in hvrun's environment, or on its command line, and has no effect.
void warn_of_unused_settings(const JobSpec& spec, const std::vector<HostTarget>& targets,
                             const Environment& environment) {
  print_warnings(ignored_variables(spec, environment));
  print_warnings(unmatched_exports(spec, environment));
  print_warnings(overridden_variables(spec, environment));
  const auto logs_in = [&spec](const HostTarget& target) {
    return is_reached_by_ssh(spec, target);
  };
  if (std::none_of(targets.begin(), targets.end(), logs_in))
    print_warnings(warnings_of_unused_login(spec, environment));
  // srun hands hvrun's environment to its agents; a login on another host does not.
  const bool has_own_environment = std::any_of(
      targets.begin(), targets.end(),
      [&](const HostTarget& target) { return logs_in(target) && !is_own_name(target.name); });
  if (has_own_environment) print_warnings(variables_left_behind(spec, environment));
}

// Whether the user names this machine alone, by any of its names, and neither slots nor a login.
bool is_this_machine_by_name(const JobSpec& spec, const HostList& list,
                             const std::vector<HostTarget>& targets) {
  const bool is_one_named =
      !list.this_machine && list.scheduler.empty() && list.entries.size() == 1;
  if (!is_one_named || !list.entries.front().is_bare()) return false;
  const HostTarget& target = targets.front();
  if (target.is_local) return true;
  const bool has_login = !target.user.empty() || target.port != 0 ||
                         !target.identity_file.empty() || !target.address.empty() ||
                         !spec.access.remote_shell.empty() || !list.reach.kubectl.program.empty();
  if (has_login || spec.access.spawner == SpawnerChoice::kSrun) return false;
  const std::vector<std::string> addresses = look_up({target.name}).front();
  return std::find(addresses.begin(), addresses.end(), kThisMachine) != addresses.end();
}

// --result-fd: one that hvrun was started with and may write to. Nothing that hvrun starts inherits
// it: the caller would wait for the end of what it reads as long as one of those runs. hvrun's own
// descriptors, one of which may have that number, are closed at exec.
void take_result_descriptor(int fd) {
  const int flags = ::fcntl(fd, F_GETFD), mode = flags < 0 ? -1 : ::fcntl(fd, F_GETFL);
  std::string problem;
  if (mode < 0) {
    problem = errno_text(errno);
  } else if ((flags & FD_CLOEXEC) != 0) {
    problem = "hvrun was not started with it";
  } else if ((mode & O_ACCMODE) == O_RDONLY || (mode & O_PATH) != 0) {
    problem = "it is not open for writing";
  } else if (::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0) {
    problem = errno_text(errno);
  }
  if (problem.empty()) return;
  throw Error(ErrorKind::kUsage,
              "--result-fd=" + std::to_string(fd) + " names no descriptor for results: " + problem,
              "start hvrun with the writing end of a pipe under that number, as hvrun.run does");
}

// Without its symbolic links; empty where it has none, or is not there.
std::string real_directory_if_other(const std::string& directory) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(directory, error).string();
  return error || real == directory ? "" : real;
}

// Called while hvrun has one thread only: the mask is 0 for a moment.
std::uint32_t own_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

PreparedJob prepare_job(LaunchCommand command, Environment environment) {
  JobSpec& spec = command.spec;
  for (ProgramSpec& program : spec.programs)
    program.real_directory = real_directory_if_other(program.working_directory);
  spec.environment.umask = own_umask();
  if (spec.output.result_fd) take_result_descriptor(*spec.output.result_fd);
  print_warnings(command.horovod.warnings);
  for (const Export& variable : command.horovod.variables.list())
    environment.set(variable.name, variable.value);
  spec.hosts.way_is_stated = has_ssh_options(spec) || spec.access.spawner != SpawnerChoice::kAuto;
  HostList list = find_hosts(spec.hosts, environment, look_up).list;
  choose_spawner(&list, environment, &spec);
  if (is_machine_by_default(list, environment))
    print_warnings(warnings_of_login_node(find_slurm(environment)));
  CommonEnvironment ranks = common_environment(spec, environment);
  if (spec.environment.mpi_first) print_warnings(put_mpi_first(&ranks));
  const std::vector<HostTarget> targets = targets_of(spec, list, own_hostname());
  list.is_this_machine_by_name = is_this_machine_by_name(spec, list, targets);
  warn_of_unused_settings(spec, targets, environment);
  if (spec.report.dry_run != DryRun::kOffline) {
    check_stated_slots(spec, list);
    configure_log(spec.report.verbose ? LogLevel::kInfo : LogLevel::kWarn, "hvrun");
  }
  return {std::move(spec), std::move(list), std::move(environment), std::move(ranks)};
}

}  // namespace hv::launcher
