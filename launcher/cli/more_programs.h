// Several programs in one job: hvrun -np 1 ./serve : -np 4 -x A=1 ./train.
// SPDX-License-Identifier: Apache-2.0
//
// A lone ":" ends a program's arguments, unless the program was set off by "--": then every word
// behind is its own. What stands before the first program is of the whole job; before a later one
// stand -np, -x and --wdir.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/cli/program_search.h"
#include "launcher/plan/job_spec.h"

namespace hv::launcher {

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
