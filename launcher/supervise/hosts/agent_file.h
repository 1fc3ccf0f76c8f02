// Where the programs for hosts lie on this machine, and the name of their build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

// Beside hvrun itself, else in ../libexec/hvrun. Throws Error(kStart) when it is in neither place.
std::string find_agent_file();

// Hex digest of the file's bytes: names its copies on other hosts. Throws Error(kStart) when it
// cannot be read.
std::string agent_digest(const std::string& file);

// hvrun-inventory or hvrun-pmix of this build for such machines (uname -m); none: it lies in
// neither place, or is for others.
std::optional<std::string> helper_program(const std::string& name, const std::string& machine);

}  // namespace hv::launcher
