// `hvrun explain DIR`: what it is asked, and what it prints.
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

// Reads the folder. Throws Error(kUsage) where no job has left anything.
std::string explanation(const ExplainCommand& command);

}  // namespace hv::launcher
