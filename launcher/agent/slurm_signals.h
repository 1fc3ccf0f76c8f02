// How far Slurm carries a signal that is meant for a job step: to the step's tasks, which are the
// agents, or to every process below them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/base/environment.h"

namespace hv::launcher {

// What a file holds; none: it cannot be read.
using FileText = std::function<std::optional<std::string>(const std::string& path)>;

// By slurm.conf's ProctrackType, with what it includes, and by cgroup.conf beside it: linuxproc
// signals each process itself, cgroup (the default) only the tasks unless SignalChildrenProcesses
// says yes, pgid only the tasks. Source: slurm.conf(5), cgroup.conf(5), src/plugins/proctrack of
// Slurm. Pure but for text_of.
bool signals_every_process(const std::string& slurm_conf, const FileText& text_of);

// By the slurm.conf of this host, which is read now and may lie far away; false outside of a step,
// and where there is none to read.
bool slurm_signals_every_process(const Environment& environment);

}  // namespace hv::launcher
