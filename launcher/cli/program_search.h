// Finds where hvrun's options end and the program begins. Reads words only, no files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"

namespace hv::launcher {

// An option as the search needs it: its names ("--np", "-n") and whether the next word is its
// value. An option with an optional value takes it only after '='.
struct OptionShape {
  std::vector<std::string> names;
  bool takes_value = false;
};

struct SplitWords {
  std::vector<std::string> options;  // normalised: "-np" has become "--np"
  std::vector<std::size_t> begins;   // index of each option; its value may be the next word
  std::vector<std::string> program;  // empty when no program was named
  bool is_set_off = false;           // "--" stood before the program
};

// Throws Error(kUsage) for an unknown option, with the nearest known one, and for a missing value.
SplitWords split_at_program(const std::vector<std::string>& words,
                            const std::vector<OptionShape>& options);

// ---- several programs in one job: hvrun -np 1 ./serve : -np 4 -x A=1 ./train.
// A lone ":" ends a program's arguments, unless "--" stands before the program: then all later
// words are its arguments. Options before the first program apply to the whole job. -np, -x and
// --wdir may stand before a later program.

// Removes the first lone ":" of the program's words and the words after it, and returns the latter.
// Empty: there is no later program.
std::vector<std::string> cut_at_colon(SplitWords* split);

// hvrun's own options as they were typed, without the "--" behind them. words: the whole line.
std::vector<std::string> typed_options(const std::vector<std::string>& words,
                                       const SplitWords& split);

// The programs in `words`, in order. directory: the working directory of programs without --wdir.
// Throws Error(kUsage).
std::vector<ProgramSpec> parse_more_programs(std::vector<std::string> words,
                                             const std::string& directory,
                                             const std::function<std::string()>& current_directory);

// Adds later programs; spec->ranks becomes the sum of their ranks. Throws Error(kUsage) for a
// program without a number of ranks.
void add_programs(JobSpec* spec, std::vector<ProgramSpec> more);

}  // namespace hv::launcher
