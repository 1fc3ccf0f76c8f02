// How far Slurm carries a signal that is meant for a job step: to the step's tasks, which are the
// agents, or to every process below them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "src/base/environment.h"

namespace hv::launcher {

// slurm.conf's ProctrackType: linuxproc signals each process itself, cgroup (the default) and pgid
// only the tasks. Pure. Source: slurm.conf(5), src/plugins/proctrack of Slurm.
bool signals_every_process(std::string_view slurm_conf);

// By the slurm.conf of this host, which is read now; false outside of Slurm, and where there is
// none to read.
bool slurm_signals_every_process(const Environment& environment);

}  // namespace hv::launcher
