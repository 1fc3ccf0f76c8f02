// NestedLauncher: another launcher, such as torchrun or mpirun, as the program that hvrun is to
// start. Each rank would start a whole job of its own. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// torchrun, accelerate and deepspeed are meant to run once on each host of a job: they may be the
// program where each host has one rank and their own options say that there are other hosts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/launch_plan.h"

namespace hv::launcher {

struct NestedLauncher {
  std::string name;  // "torchrun", "accelerate launch", "python -m torch.distributed.run"
  bool joins_several_hosts = false;  // its options say that it is one of several
  std::string join_options{};        // options that would say so; empty: there are none
  // What it would start, as hvrun takes it: "python train.py --lr 1".
  std::vector<std::string> program{};
  std::optional<int> ranks{};         // its option for the number of processes, ...
  bool are_ranks_per_host = false;    // ... on each host
  bool has_options_of_hvrun = false;  // `program` begins with options that hvrun takes itself
};

// argv: of a program, which may stand behind wrappers such as env and numactl. Options are read by
// the launchers' manuals; an unknown one counts as one with a value.
std::optional<NestedLauncher> find_nested_launcher(const std::vector<std::string>& argv);

// The words quoted for a shell, cut at 300 bytes.
std::string format_command(std::vector<std::string> options,
                           const std::vector<std::string>& program);

// The command to type instead.
using SuggestCommand = std::function<std::string(const NestedLauncher&)>;

// Throws Error(kUsage) if argv is a launcher that does not join several hosts.
void refuse_launcher(const std::vector<std::string>& argv, const SuggestCommand& suggest);

// Throws Error(kUsage) for a program that is a launcher and does not join several hosts, with the
// command to type instead. options: those of hvrun, as typed. --nested allows such programs.
void refuse_nested_launchers(const JobSpec& spec, const std::vector<std::string>& options,
                             bool is_in_scheduler_job);

// Throws Error(kUsage) where a host has several ranks of one that does.
void check_ranks_of_launchers(const JobSpec& spec, const LaunchPlan& plan);

}  // namespace hv::launcher
