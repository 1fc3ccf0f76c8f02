// The variables of a rank, from the plan to execve: a map with one rule, of two values the later
// counts.
// SPDX-License-Identifier: Apache-2.0
//
// The layers, each above the one before it:
//
//   1. login variables of the rank's host, and PWD
//   2. hvrun's own environment, less what describes its host, its login or a scheduler's step;
//      none with --clean-env
//   3. horovodrun's options, then -x for all ranks, in the order of the command line
//   4. CUDA_DEVICE_ORDER and the job's Slurm variables, unless -x for all ranks names them
//   5. -x of the rank's program
//   6. the contract, the rank's Slurm variables and what its placement says, such as its GPUs:
//      placement's only where neither hvrun's environment nor -x has that name, Slurm's unless -x
//      for all ranks names it
//   7. what MPI needs, where hvrun wires it
//
// Some are defaults, set only where a name has no value by then: PYTHONUNBUFFERED, the time for
// stragglers with --verbose, some of MPI's.
// hvrun composes 2 and 3 once for a job (launcher/plan/common_environment.h), and 4 for each host;
// the agent composes the rest (launcher/agent/ranks/rank_command.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/environment.h"

namespace hv {

class RankEnvironment {
 public:
  RankEnvironment() = default;
  // NAME=VALUE; other entries are dropped.
  static RankEnvironment from_entries(const std::vector<std::string>& entries);

  void set(std::string name, std::string value) {
    variables_.set(std::move(name), std::move(value));
  }
  // Unless the name has a value already, which may be empty.
  void set_default(std::string name, std::string value);
  // Each of them, in their order.
  void set_all(const std::vector<std::string>& entries);
  void set_all(const std::vector<std::pair<std::string, std::string>>& pairs);
  void set_all(const RankEnvironment& later);
  void unset(std::string_view name) { variables_.unset(name); }

  bool has(std::string_view name) const { return variables_.has(name); }
  bool is_empty() const { return variables_.all().empty(); }
  // To look them up, by knobs for instance.
  const Environment& as_environment() const { return variables_; }
  // NAME=VALUE, sorted by name.
  std::vector<std::string> entries() const { return variables_.entries(); }

 private:
  Environment variables_;
};

}  // namespace hv
