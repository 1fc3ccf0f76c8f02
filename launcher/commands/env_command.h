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

// A row for each knob: its name, value, where that came from, and what it is; malformed ones are
// marked. What is set and ignored, in sentences. What is wrong with the first malformed one.
struct EnvTable {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> ignored;
  std::optional<Error> trouble;
};
EnvTable env_table(const Environment& environment);
std::string env_text(const EnvTable& table);
// One object, indented, with a line end: settings, frameworks, backends, CUDA, operations.
std::string env_json(const EnvTable& table, const BuildFacts& facts);
// Which algorithm carries out which collective: HVRUN_ALGORITHM's wishes, then the table. Throws
// Error(kUsage) for wishes that are none.
std::string env_algorithms(const Environment& environment);

}  // namespace hv::launcher
