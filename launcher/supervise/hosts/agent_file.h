// Finds the programs for hosts on this machine, and identifies their build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

// In hvrun's directory, else in ../libexec/hvrun. Throws Error(kStart) when it is in neither.
std::string find_agent_file();

// Hex digest of the file's bytes: names its copies on other hosts. Throws Error(kStart) when it
// cannot be read.
std::string agent_digest(const std::string& file);

// The bytes of hvrun-inventory or hvrun-pmix of this build for that architecture (uname -m). none:
// it is in neither directory, or is for another architecture.
std::optional<std::string> helper_program(const std::string& name, const std::string& machine);

}  // namespace hv::launcher
