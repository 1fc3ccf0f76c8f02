// What hvrun's own options and those of its subcommands are parsed by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/cli/program_search.h"

namespace hv::launcher {

// What the search for the program has to know of the app's options.
std::vector<OptionShape> shapes_of(const CLI::App& app);

// help: "'hvrun --help' lists the options". Throws Error(kUsage).
void parse_options(CLI::App& app, const std::vector<std::string>& words, const std::string& help);
// -H "$HOSTS" with HOSTS unset is a mistake, not this machine. Throws Error(kUsage).
void refuse_empty_values(const CLI::App& app);

}  // namespace hv::launcher
