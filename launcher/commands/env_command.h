// `hvrun env`: every knob, its value, and where that came from, as a table or JSON; `hvrun env
// --algorithms`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/check_build.h"
#include "src/base/environment.h"
#include "src/base/error.h"

namespace hv::launcher {

struct EnvCommand {
  enum class Form { kTable, kAlgorithms, kJson };
  Form form = Form::kTable;
};

// words: those after "env". Throws Error(kUsage).
EnvCommand parse_env_command(const std::vector<std::string>& words);

struct EnvTable {
  // One for each knob: its name, value, origin and summary. A malformed value is marked.
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> ignored;  // sentences on variables that are set and have no effect
  std::optional<Error> trouble;      // the error about the first malformed value
};
EnvTable env_table(const Environment& environment);
std::string env_text(const EnvTable& table);
// One object, indented, with a line end: settings, frameworks, backends, CUDA, operations.
std::string env_json(const EnvTable& table, const BuildFacts& facts);
// Which algorithm carries out which collective: HVRUN_ALGORITHM's overrides, then the table. Throws
// Error(kUsage) for a malformed override.
std::string env_algorithms(const Environment& environment);

}  // namespace hv::launcher
