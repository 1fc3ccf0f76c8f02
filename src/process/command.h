// Command: what to run, as a value. Bytes throughout; nothing goes through a shell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hv {

struct Command {
  std::vector<std::string> argv;  // argv[0] as the program shall see it
  std::string program;  // the file to execute; empty: argv[0], searched in PATH of environment
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // empty: the caller's
};

// Where execvp would find it: name itself when it holds a '/', relative to directory, else along
// path (value of PATH). Empty when there is nothing executable; *reason then says why in the
// system's words.
std::string find_program(const std::string& name, const std::string& path,
                         const std::string& directory, std::string* reason);

// Where this program's file lies; where it has been removed meanwhile, where it was, with the
// kernel's words behind it. Empty: the kernel does not tell.
std::string own_file();

// Its folder, without a slash at the end; "." where own_file() is empty.
std::string own_folder();

}  // namespace hv
