// The settings of Slurm that hvrun needs, as `scontrol show config` prints them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hv::launcher {

constexpr std::size_t kMostSlurmConfigBytes = 256 << 10;

struct SlurmSettings {
  std::string proctrack;                   // ProctrackType's plugin: "linuxproc", "cgroup", "pgid"
  bool signal_children_processes = false;  // of the cgroup plugin; not printed: no
  std::optional<std::chrono::seconds> kill_wait;  // between Slurm's SIGTERM and SIGKILL
  bool preempts = false;  // jobs of higher priority may end others (PreemptType)
  bool operator==(const SlurmSettings&) const = default;
};

// Parses lines "Name   = value" and ignores all other lines; the last of repeated names counts.
// nullopt: the text has no valid ProctrackType, or is longer than kMostSlurmConfigBytes.
std::optional<SlurmSettings> parse_slurm_settings(std::string_view text);

// A partition's GraceTime, from the words NAME=VALUE of `scontrol show partition`: between the
// SIGTERM of a preemption and the end that it announces. nullopt: not printed, or no number.
std::optional<std::chrono::seconds> parse_grace_time(std::string_view text);

// The time that Slurm leaves a job between its first SIGTERM and its SIGKILL: KillWait at the time
// limit and after scancel, and the longer of both after a preemption. Slurm does not say which it
// is, and no process outlives its SIGKILL, so the longer one is taken.
std::optional<std::chrono::seconds> time_to_end(const SlurmSettings& settings,
                                                std::optional<std::chrono::seconds> grace_time);

// Whether Slurm signals every process of a step, or only the step's tasks, which are the agents:
// linuxproc signals every process, cgroup does with SignalChildrenProcesses, pgid does not.
// Source: slurm.conf(5), cgroup.conf(5), src/plugins/proctrack of Slurm.
bool signals_every_process(const SlurmSettings& settings);

}  // namespace hv::launcher
