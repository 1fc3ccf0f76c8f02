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

// PWD, by which the user knows it and other hosts may too, where that is the same directory; else
// what getcwd(3) says. Throws Error(kUsage) where it no longer exists.
std::string current_directory(const Environment& environment);

// The program's file by hvrun's PATH; empty: there is none.
std::string find_on_path(const std::string& program, const Environment& environment);

// Writes text to standard output as it is and returns 0: for programs, and what this program alone
// has written. Throws Error(kStart).
int print_text(const std::string& text);
// The same for the user: printable, because it may quote foreign text.
int print_report(const std::string& text);

// On standard error, printable: "hvrun: TEXT".
void print_message(const std::string& text);
void print_warnings(const std::vector<std::string>& texts);
// advice: may be empty.
void print_error(const std::string& text, const std::string& advice = {});

}  // namespace hv::launcher
