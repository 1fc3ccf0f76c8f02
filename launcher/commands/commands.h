// The subcommands of hvrun, which main's table calls, and what they share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

// Each stands in NAME_command.cc. words: those after the subcommand's name; a launch has no name.
// Return the exit code; throw Error.
int run_launch(const std::vector<std::string>& words, const Environment& environment);
int run_check(const std::vector<std::string>& words, const Environment& environment);
int run_env(const std::vector<std::string>& words, const Environment& environment);
int run_explain(const std::vector<std::string>& words, const Environment& environment);
int run_script(const std::vector<std::string>& words, const Environment& environment);

// Throws Error(kUsage) where it no longer exists.
std::string current_directory();

// Writes text to standard output and returns 0. Throws Error(kStart).
int print_text(const std::string& text);

// Each line on standard error.
void print_warnings(const std::vector<std::string>& lines);

}  // namespace hv::launcher
