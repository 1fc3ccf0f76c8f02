// The job's programs on this host: where each lies, whether the kernel could start it, its content.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_program(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// When what a probe waits for must be there, so that it can still say what was not.
TimePoint end_of_probe(const wire::CheckRequest& request);
// environment: that of all ranks.
Environment environment_of_program(const wire::Program& program, const Environment& environment);
// "python3", "python3.11", "pypy3".
bool is_python_name(const std::string& file);
// The script that Python would run for these arguments, as it is named there; none for -c, -m and
// standard input.
std::optional<std::string> python_script(const std::vector<std::string>& argv);
// What executes a program there: the interpreter of a script, found as the kernel and env(1) find
// it, else the program itself.
std::string executed_file(const std::string& program, const std::string& directory,
                          const std::string& path);
// Of a file's content; "" where it is too large, or cannot be read.
std::string digest_of_file(const std::string& path);

}  // namespace hv::launcher
