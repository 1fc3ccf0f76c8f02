// The command line of `hvrun explain DIR`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launcher/cli/command_line.h"

namespace hv::launcher {

struct ExplainCommand {
  std::string folder;
  bool as_json = false;
};

// words: those after "explain". Throws Error(kUsage).
std::variant<ExplainCommand, PrintCommand> parse_explain_command(
    const std::vector<std::string>& words);

}  // namespace hv::launcher
