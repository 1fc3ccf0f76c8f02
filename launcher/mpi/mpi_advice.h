// What mpirun's own words, and its ssh's, tell whoever reads them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/mpi/mpirun.h"

namespace hv::launcher {

// What may mend that mpirun has failed; empty: nothing is known. words: its last ones.
std::string mpirun_advice(const Mpirun& mpirun, const std::string& words);

// As above, of words that it has of --mpi-args.
std::string advice_on_mpi_args(const Mpirun& mpirun, const std::vector<std::string>& mpi_args,
                               const std::string& words);

// How a rank's stderr begins where Hydra's daemon tells there that it could not start the rank.
bool is_of_starter(const Mpirun& mpirun, std::string_view bytes);

// Open MPI's words on ranks of which none has begun: its exit code is then an error's number.
bool has_started_nobody(const Mpirun& mpirun, const std::string& words);

// Hydra's lets other ranks run on where one has no program; Open MPI's ends them.
bool goes_on_without(const Mpirun& mpirun);

// Hydra's does not notice that its ssh has given up, and waits for that host for ever.
bool waits_in_vain(const Mpirun& mpirun, const std::string& words);

}  // namespace hv::launcher
