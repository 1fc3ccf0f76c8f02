// The command line of a job: options by group, the programs and their arguments.
// SPDX-License-Identifier: Apache-2.0
//
// The program is found before the option parser runs: it is the first word that is neither an
// option nor an option's value, or the word after "--". All later words belong to the program.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/horovod_options.h"
#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct LaunchCommand {
  JobSpec spec;
  HorovodSettings horovod;  // the spec's exports have its variables, too
};
struct CheckBuildCommand {};  // hvrun --check-build
// Text for stdout, exit 0: --help, --version.
struct PrintCommand {
  std::string text;
};
using CommandLine = std::variant<LaunchCommand, CheckBuildCommand, PrintCommand>;

// words: argv without argv[0]. current_directory: called only if --wdir is relative or not given,
// because the current directory may no longer exist. Throws Error(kUsage), for an unknown option
// with the nearest known one.
CommandLine parse_command_line(const std::vector<std::string>& words,
                               const Environment& environment,
                               const std::function<std::string()>& current_directory);

// words: those after "hvrun check", which takes the same options and no program.
CommandLine parse_check_line(const std::vector<std::string>& words, const Environment& environment,
                             const std::function<std::string()>& current_directory);

}  // namespace hv::launcher
