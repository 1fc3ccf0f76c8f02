// The file that a program of the job is on this host; or what is in the way, in words, and what to
// try. For a launch and for a check. May block, as file systems do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/wire/messages.h"

namespace hv::launcher {

// As execvp where PATH is not set.
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Why no rank could work in that directory.
std::optional<wire::Problem> directory_problem(const wire::Program& program);

// path: the ranks' PATH. *found: the file; empty where there is none. Its directory is looked at,
// too.
std::optional<wire::Problem> find_program_there(const wire::Program& program,
                                                const std::string& path, std::string* found);

// The interpreter that a script's first line names, as the kernel reads it, and what else stands
// there; nothing for what is no script, or names none.
struct FirstLine {
  std::string interpreter;  // as written; a relative one is looked for in the working directory
  std::string argument;     // "python3" of "#!/usr/bin/env python3"
};
std::optional<FirstLine> first_line_of(const std::string& program);

// Why a file that is there and executable could not be executed in that directory: its first line,
// if that is the reason. The kernel looks for a relative one in the directory of the process.
std::optional<wire::Problem> interpreter_problem(const std::string& program,
                                                 const std::string& directory);

}  // namespace hv::launcher
