// horovodrun's options under their own names, and its --config-file.
// SPDX-License-Identifier: Apache-2.0
//
// Each sets a variable that ranks read, or has nothing to set here, and then a warning says why.
// The command line beats the file. To accept one more is to add one row to the table.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace hv::launcher {

struct HorovodSettings {
  std::vector<std::string> variables;  // NAME=VALUE
  std::vector<std::string> warnings;   // a line for each that sets nothing
};

class HorovodOptions {
 public:
  HorovodOptions();
  // Not shown by --help: hvrun(1) lists them. This must outlive the app's parsing.
  void add_to(CLI::App& app);
  // After parsing. Reads the file of --config-file. Throws Error(kUsage).
  HorovodSettings settings() const;
  // With the text of a file called `source` instead; empty: none.
  HorovodSettings settings(const std::string& config, const std::string& source) const;

 private:
  std::string config_file_;
  std::vector<std::string> values_;  // by row of the table; empty: not given
  std::vector<int> flags_;           // likewise: how often
};

}  // namespace hv::launcher
