// Programs that start the user's: wrappers such as numactl, nice and env, and Python. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

// The program that a wrapper starts: "python3 train.py" of "numactl --localalloc python3 train.py",
// with env's assignments in its environment. Nothing: no known wrapper, or an unknown option.
std::optional<wire::Program> wrapped_program(const wire::Program& program);

// "train.py" of "/home/ada/train.py".
std::string base_name(const std::string& path);

// "python3", "/usr/bin/python3.11", "pypy3".
bool is_python_name(const std::string& file);

// What a command line of Python's runs. Both are empty for -c, standard input and no program.
struct PythonTarget {
  std::string script{};  // as written: "train.py"
  std::string module{};  // of -m
  std::size_t next = 0;  // index of the first word behind it
};
PythonTarget python_target(const std::vector<std::string>& argv);

}  // namespace hv::launcher
