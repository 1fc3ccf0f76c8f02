// What mpirun's own words, and its ssh's, tell whoever reads them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/mpi/mpirun.h"

namespace hv::launcher {

// What may mend that mpirun has failed; empty: nothing is known. words: its last ones.
std::string mpirun_advice(const Mpirun& mpirun, const std::string& words);

// Hydra's does not notice that its ssh has given up, and waits for that host for ever.
bool waits_in_vain(const Mpirun& mpirun, const std::string& words);

}  // namespace hv::launcher
