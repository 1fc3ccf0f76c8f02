// LD_LIBRARY_PATH and LD_PRELOAD, which ranks need, may break the system's own programs, such as
// ssh with another OpenSSL. Programs that hvrun runs for itself then run once more without them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hv::launcher {

// words: how a program ended, and its stderr. Whether the dynamic loader, or a library of another
// version, ended it before it did anything.
bool is_loader_failure(const std::string& words);

// Removes both variables from NAME=VALUE entries. False: there was none.
bool remove_loader_settings(std::vector<std::string>* environment);

// Warns that the program runs without them, once for each program.
void warn_of_loader_settings(const std::string& program, const std::string& words);

}  // namespace hv::launcher
