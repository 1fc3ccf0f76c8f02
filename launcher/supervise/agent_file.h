// Where the agent's program lies on this machine, and the name of its build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv::launcher {

// Beside hvrun itself, else in ../libexec/hvrun. Throws Error(kStart) when it is in neither place.
std::string find_agent_file();

// Hex digest of the file's bytes: names its copies on other hosts. Throws Error(kStart) when it
// cannot be read.
std::string agent_digest(const std::string& file);

}  // namespace hv::launcher
