// The agent's part between an MPI's mpirun and each rank that it starts.
// SPDX-License-Identifier: Apache-2.0
//
//   hvrun-agent --carry-output program arguments       carries its output (carried_output.h)
//   hvrun-agent --bind RULE program arguments          binds it, and becomes it (mpirun_rank.h)
//   hvrun-agent --carry-output --bind RULE program arguments
#pragma once

#include <string>
#include <vector>

namespace hv::launcher {

bool is_for_mpirun_rank(int argc, char** argv);

// words: behind argv[0]. host: this one's name. Returns the exit code where the program could not
// be started; else ends as it does, or is it.
int run_mpirun_rank(std::vector<std::string> words, const std::string& host);

}  // namespace hv::launcher
