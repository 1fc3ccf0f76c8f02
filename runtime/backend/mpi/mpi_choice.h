// Which MPI of those that hvrun knows a process uses. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/mpi/mpi_plugin.h"
#include "src/base/environment.h"
#include "src/base/status.h"

namespace hv::runtime {

struct MpiFlavour {
  const char* name;                    // as HVRUN_MPI has it
  const char* title;                   // "Open MPI"
  const char* packages;                // of Debian, to build hvrun beside
  const char* plugin;                  // "libhvrun-openmpi.so"
  std::vector<const char*> libraries;  // names that it is opened by, and a process has it by
  const char* folder;                  // of the one that hvrun was built beside; "": of none
  bool is_open_mpi;                    // which alone has kOpenMpisSymbol
};
const std::vector<MpiFlavour>& mpi_flavours();
constexpr const char* kOpenMpisSymbol = "ompi_mpi_comm_world";

// wanted: HVRUN_MPI, "": the one that the process holds (its name, or ""), else that of the
// launcher that has started it, else each in turn: as where that speaks PMIx, which either may.
std::vector<const MpiFlavour*> mpi_order(const std::string& wanted, const std::string& held,
                                         const Environment& environment);

// The part for that MPI does not lie where it would, at that path: what that means and what to try.
// others: those of which it does.
Status not_built(const MpiFlavour& flavour, const std::string& path,
                 const std::vector<const MpiFlavour*>& others);

// A file that lies where that MPI was looked for, and cannot be used.
struct BrokenLibrary {
  std::string file;
  std::string reason;
};

// Of such ones, where no other was found: what to do about the first.
Status broken_libraries(const MpiFlavour& flavour, const std::vector<BrokenLibrary>& broken);
// What the user is told where another MPI, or another file, is used instead: used.
std::string replaced_words(const std::string& why, const std::string& used);

// A launcher has told this process how an MPI finds the others.
bool is_started_by_mpi(const Environment& environment);
// How many ranks it has started; 0: it does not say.
std::int64_t ranks_of_launcher(const Environment& environment);

// kUnsupported: a rank has no MPI to be used, or another one than the rest, with who and what to
// try. The same on every rank.
Status can_begin_together(const std::vector<MpiFacts>& facts);

// By rank of the job, in MPI_COMM_WORLD, of ranks that have begun it; the same on every rank.
// kUnsupported: one has not, or they are in no common world, with who and what to try.
Status place_in_world(const std::vector<MpiFacts>& facts, std::vector<int>* world_ranks);

}  // namespace hv::runtime
