// RankEnvironment: the variables of a rank, from the plan to execve. A map with one rule: the later
// of two values counts.
// SPDX-License-Identifier: Apache-2.0
//
// The layers, from the lowest to the highest:
//
//   1. login variables of the rank's host, and PWD
//   2. hvrun's own environment, less what describes its host, its login or a scheduler's step;
//      none with --clean-env
//   3. horovodrun's options, then -x for all ranks, in the order of the command line; --mpi puts
//      mpi first in the HVRUN_BACKEND of this layer and of 5
//   4. CUDA_DEVICE_ORDER and Slurm's variables of the ranks, unless -x for all ranks names them
//   5. -x of the rank's program
//   6. the contract; the rank's Slurm variables, unless -x for all ranks names them; variables of
//      its placement, such as its GPUs, unless hvrun's environment or -x has them
//   7. what MPI needs, where hvrun wires it; rank 0's HVRUN_RESULT_FD, with --result-fd; the
//      directory in front of PYTHONPATH (launcher/agent/ranks/python_start.h)
//
// Some variables are defaults, set only where a name has no value yet: PYTHONUNBUFFERED,
// HVRUN_STRAGGLER_SECONDS with --verbose (where it is empty, too), some of MPI's.
// hvrun composes 2 and 3 once for a job (launcher/plan/common_environment.h), and 4 for each host.
// The agent composes the rest (launcher/agent/ranks/rank_command.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/environment.h"

namespace hv {

class RankEnvironment {
 public:
  void set(std::string name, std::string value) {
    variables_.set(std::move(name), std::move(value));
  }
  void unset(std::string_view name) { variables_.unset(name); }
  // Keeps a value that the name has already, even an empty one.
  void set_default(std::string name, std::string value);
  // Sets each NAME=VALUE, in their order; drops other entries.
  void set_all(const std::vector<std::string>& entries);
  void set_all(const std::vector<std::pair<std::string, std::string>>& pairs);
  void set_all(const RankEnvironment& later);

  bool has(std::string_view name) const { return variables_.has(name); }
  bool is_empty() const { return variables_.all().empty(); }
  // For look-ups and for KnobReader.
  const Environment& as_environment() const { return variables_; }
  // NAME=VALUE, sorted by name.
  std::vector<std::string> entries() const { return variables_.entries(); }

 private:
  Environment variables_;
};

}  // namespace hv
