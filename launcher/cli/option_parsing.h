// Parses the options of hvrun and of its subcommands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/cli/program_search.h"

namespace hv::launcher {

// The app's options as the search for the program needs them.
std::vector<OptionShape> shapes_of(const CLI::App& app);

// help: "'hvrun --help' lists the options". Throws Error(kUsage).
void parse_options(CLI::App& app, const std::vector<std::string>& words, const std::string& help);
// Throws Error(kUsage) for an option with an empty value: -H "$HOSTS" with HOSTS unset must not
// mean this machine.
void refuse_empty_values(const CLI::App& app);

}  // namespace hv::launcher
