// The command line: options by group, the program and its arguments, the subcommands.
// SPDX-License-Identifier: Apache-2.0
//
// The program is found before the option parser sees anything: it is the first word that is neither
// an option nor an option's value, or what follows "--". Everything behind it belongs to the
// program.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/horovod_options.h"
#include "launcher/plan/job_spec.h"
#include "launcher/script/job_request.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct LaunchCommand {
  JobSpec spec;
  HorovodSettings horovod;  // the variables are among the spec's exports, too
};
struct EnvCommand {  // hvrun env
  enum class Form { kTable, kAlgorithms, kJson };
  Form form = Form::kTable;
};
struct CheckBuildCommand {};  // hvrun --check-build
struct ScriptCommand {        // hvrun script
  JobRequest request;
  std::string site;
  std::string file;  // empty: standard output
  bool may_overwrite = false;
  bool lists_sites = false;
  bool shows_site = false;  // its file, and no script
};
struct ExplainCommand {  // hvrun explain
  std::string folder;
  bool as_json = false;
};
// Text for stdout, exit 0: --help, --version.
struct PrintCommand {
  std::string text;
};
using CommandLine = std::variant<LaunchCommand, EnvCommand, CheckBuildCommand, ScriptCommand,
                                 ExplainCommand, PrintCommand>;

// words: argv without argv[0]. current_directory: asked only where the words lead there, for it may
// be gone. Throws Error(kUsage), naming the nearest option for an unknown one.
CommandLine parse_command_line(const std::vector<std::string>& words,
                               const Environment& environment,
                               const std::function<std::string()>& current_directory);

}  // namespace hv::launcher
