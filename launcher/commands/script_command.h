// `hvrun script`: the job script for a site, the list of sites, one site's file.
// SPDX-License-Identifier: Apache-2.0
//
// An option before the program belongs to hvrun script if it has one of that name. Any other is an
// option of hvrun: hvrun's parser checks it, and the script gets it as it was typed.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/command_line.h"
#include "launcher/script/job_request.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct ScriptCommand {
  JobRequest request;
  std::string site;
  std::string file;  // empty: standard output
  bool may_overwrite = false;
  bool allows_nested = false;  // --nested
  bool lists_sites = false;
  bool shows_site = false;  // its file, and no script
};

// words: those after "script". Throws Error(kUsage).
std::variant<ScriptCommand, PrintCommand> parse_script_command(
    const std::vector<std::string>& words, const Environment& environment,
    const std::function<std::string()>& current_directory);

}  // namespace hv::launcher
