// Which probes fit a failure, by what it has left behind. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "src/process/exit_status.h"

namespace hv::launcher {

// What is known of a launch that failed, or of the rank that was its cause.
struct FailureSigns {
  std::string words;  // an error's, or the rank's last lines
  std::optional<ExitStatus> end;
};

struct FittingProbes {
  std::set<std::string> names;  // of all_probes()
  bool asks_hosts = false;      // some are of what an agent looks at
  bool asks_drivers = false;    // some are of GPUs
};

// None where the signs say nothing: a mistake in a script is no affair of the hosts.
FittingProbes fitting_probes(const FailureSigns& signs);

}  // namespace hv::launcher
