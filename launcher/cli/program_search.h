// Where do hvrun's options end and the program begin? Decided on words alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hv::launcher {

// What the search knows of an option: its spellings ("--np", "-n") and whether the next word is its
// value. An option with an optional value takes it only after '='.
struct OptionShape {
  std::vector<std::string> names;
  bool takes_value = false;
};

struct SplitWords {
  std::vector<std::string> options;  // normalised: "-np" has become "--np"
  std::vector<std::size_t> begins;   // where in them an option is; its value may be the next word
  std::vector<std::string> program;  // empty when no program was named
  bool is_set_off = false;           // "--" stood before the program
};

// Throws Error(kUsage) for an unknown option, with the nearest known one, and for a missing value.
SplitWords split_at_program(const std::vector<std::string>& words,
                            const std::vector<OptionShape>& options);

}  // namespace hv::launcher
