// Where do hvrun's options end and the program begin? Decided on words alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"

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

// ---- several programs in one job: hvrun -np 1 ./serve : -np 4 -x A=1 ./train.
// A lone ":" ends a program's arguments, unless the program was set off by "--": then every word
// behind is its own. What stands before the first program is of the whole job; before a later one
// stand -np, -x and --wdir.

// Cuts off what stands behind the first lone ":" of the program's words; nothing: it is the last
// program.
std::vector<std::string> cut_at_colon(SplitWords* split);

// The programs that `words` names, in order. directory: of the ranks that are given none. Throws
// Error(kUsage).
std::vector<ProgramSpec> parse_more_programs(std::vector<std::string> words,
                                             const std::string& directory,
                                             const std::function<std::string()>& current_directory);

// Each of several programs has its number of ranks; spec->ranks becomes their sum. Throws
// Error(kUsage).
void add_programs(JobSpec* spec, std::vector<ProgramSpec> more);

}  // namespace hv::launcher
