// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/way_check.h"

#include <algorithm>
#include <set>

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "src/base/text.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

void check_remote_shell(const SpawnOptions& options) {
  const std::string program = split_command(options.remote_shell).at(0);
  std::string reason;
  if (!find_program(program, options.environment.get_or("PATH", ""), "", &reason).empty()) return;
  throw Error(ErrorKind::kStart,
              "reach hosts by '" + printable(options.remote_shell) +
                  "' (--rsh): find the program " + printable(program) + ": " + reason,
              "install it on this machine, or correct --rsh or HVRUN_RSH");
}

}  // namespace

void check_way(const SpawnOptions& options, const std::vector<HostTarget>& targets) {
  const bool is_all_local = std::all_of(targets.begin(), targets.end(),
                                        [](const HostTarget& host) { return host.is_local; });
  if (is_all_local || options.by_srun || !options.reach.kubectl.program.empty()) return;
  if (!options.remote_shell.empty()) {
    check_remote_shell(options);
    const std::string program = split_command(options.remote_shell).at(0);
    if (is_kubectl(program)) return;
    for (const HostTarget& host : targets)
      if (!host.is_local) check_login(program, host);
    if (!is_ssh(program)) return;
  }
  std::set<std::string> looked_at;
  for (const HostTarget& host : targets)
    if (!host.is_local && looked_at.insert(host.identity_file).second)
      check_identity_file(host.identity_file);
}

}  // namespace hv::launcher
