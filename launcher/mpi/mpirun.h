// Which MPI's mpirun is here: found on PATH, told apart by its own --version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/environment.h"

namespace hv::launcher {

enum class MpiKind { kOpenMpi, kHydra };  // Hydra: of MPICH and what has come from it

struct Mpirun {
  MpiKind kind = MpiKind::kOpenMpi;
  int major = 0;        // Open MPI's own; 0: not told
  std::string program;  // as found
  // hvrun-agent, which stands before each rank; on every host at the same place. Empty: nobody.
  std::string agent{};
  std::string version;  // its first line, for people
};

// From what `mpirun --version` says. none: of neither kind. Pure.
std::optional<Mpirun> read_mpirun_version(const std::string& program, const std::string& text);

// HVRUN_MPI's if it is set, else mpirun, else what Debian calls each. Throws Error(kStart) with
// what was looked for.
Mpirun find_mpirun(const Environment& environment);

}  // namespace hv::launcher
