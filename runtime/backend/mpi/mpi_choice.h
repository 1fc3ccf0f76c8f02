// Which MPI of those that hvrun knows a process uses. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/mpi/mpi_plugin.h"
#include "src/base/environment.h"

namespace hv::runtime {

struct MpiFlavour {
  const char* name;                    // as HVRUN_MPI has it
  const char* plugin;                  // "libhvrun-openmpi.so"
  std::vector<const char*> libraries;  // names that a process has it loaded by
};
const std::vector<MpiFlavour>& mpi_flavours();

// wanted: HVRUN_MPI, "": the one that the process holds (its name, or ""), else that of the
// launcher that has started it, else each in turn.
std::vector<const MpiFlavour*> mpi_order(const std::string& wanted, const std::string& held,
                                         const Environment& environment);

// A launcher has told this process how an MPI finds the others.
bool is_started_by_mpi(const Environment& environment);
// How many ranks it has started; 0: it does not say.
std::int64_t ranks_of_launcher(const Environment& environment);

// HVRUN_BACKEND's words: "mpi,native". Empty: all that work here.
std::vector<std::string> backend_words(const std::string& list);
bool names_mpi(const std::string& list);

// kUnsupported: a rank has no MPI to be used, or another one than the rest, with who and what to
// try. The same on every rank.
Status can_begin_together(const std::vector<MpiFacts>& facts);

// By rank of the job, in MPI_COMM_WORLD, of ranks that have begun it; the same on every rank.
// kUnsupported: one has not, or they are in no common world, with who and what to try.
Status place_in_world(const std::vector<MpiFacts>& facts, std::vector<int>* world_ranks);

}  // namespace hv::runtime
