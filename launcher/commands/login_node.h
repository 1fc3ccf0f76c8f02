// A warning for who starts a job on a login node of a Slurm cluster, where hvrun would run it on
// that node itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "src/base/environment.h"

namespace hv::launcher {

// Slurm on this machine.
struct SlurmPresence {
  bool has_commands = false;       // srun and sbatch are on PATH
  bool has_configuration = false;  // a file names a cluster, so the commands reach one
  bool runs_jobs = false;          // slurmd runs: this is a compute node, or the whole cluster
};

// Reads the file system; /proc only where there are commands and a configuration.
SlurmPresence find_slurm(const Environment& environment);

// Whether ranks would run on this machine only because nobody has said where: no host is named, no
// job has started hvrun, and no rank has.
bool is_machine_by_default(const HostList& hosts, const Environment& environment);

// The warning; none: this is certainly no login node. Pure.
std::vector<std::string> warnings_of_login_node(const SlurmPresence& slurm);

}  // namespace hv::launcher
