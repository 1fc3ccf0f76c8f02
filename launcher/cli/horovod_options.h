// horovodrun's options under their own names, its --config-file, and variables of Horovod's that
// have no effect.
// SPDX-License-Identifier: Apache-2.0
//
// An option sets a variable that ranks read, or has no effect, which a warning explains. The
// command line beats the file. To accept an option or to ignore a variable, add a row to the table.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/plan/exports.h"

namespace hv::launcher {

// A variable of Horovod's that is accepted and has no effect.
struct IgnoredVariable {
  const char* name;
  const char* reason;  // one sentence with its full stop
};
std::vector<IgnoredVariable> ignored_horovod_variables();

struct HorovodSettings {
  Exports variables;
  std::vector<std::string> warnings;  // a line for each option without effect
};

class HorovodOptions {
 public:
  HorovodOptions();
  // Not shown by --help: hvrun(1) lists them. This must outlive the app's parsing.
  void add_to(CLI::App& app);
  // After parsing. Reads the file of --config-file. Throws Error(kUsage).
  HorovodSettings settings() const;
  // config: the text of a --config-file named source; empty: none.
  HorovodSettings settings(const std::string& config, const std::string& source) const;

 private:
  std::string config_file_;
  std::vector<std::string> values_;  // by row of the table; empty: not given
  std::vector<int> flags_;           // likewise: how often
};

}  // namespace hv::launcher
