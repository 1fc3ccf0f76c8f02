// The shared object beside this library that knows the process's MPI, opened where HVRUN_BACKEND
// names it or the program has MPI's communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/mpi/mpi_plugin.h"
#include "src/base/environment.h"
#include "src/contract/contract.h"
#include "src/rendezvous/store.h"

namespace hv::runtime {

// As MpiPlugin's library() and thread_level(), of the MPI that a job would use. kUnsupported: there
// is none, with what was looked for.
Status ask_mpi(const Environment& environment, std::string* library, int* thread_level);

// Ranks that an MPI's launcher has started meet by MPI itself, where HVRUN_BACKEND names it or the
// program has begun it for threads: what the launcher gave them MPI takes for itself. *made stays
// empty: not so. Blocks until all have come.
Status open_mpi_exchange(const Environment& environment, const WaitLimits& limits,
                         std::unique_ptr<Exchange>* made);

// Ranks of the program's communicator meet: MpiPlugin::open_exchange.
Status open_communicator(const Environment& environment, const void* communicator,
                         const WaitLimits& limits, std::unique_ptr<Exchange>* made);

// Where the ranks of a job are in MPI's world.
struct MpiPlaces {
  MpiPlaces() = default;
  // Held by the context: its backends have gone, and MPI has all back.
  ~MpiPlaces() {
    if (plugin != nullptr) plugin->settle();
  }
  MpiPlaces(const MpiPlaces&) = delete;
  MpiPlaces& operator=(const MpiPlaces&) = delete;

  MpiPlugin* plugin = nullptr;
  std::vector<int> world_ranks;  // by rank of the job
  std::string library;           // "Open MPI v4.1.4"
  bool has_all_threads = false;  // of this rank: MPI_THREAD_MULTIPLE
  bool is_cuda_aware = false;    // on all ranks
};
using MpiPlacesPtr = std::shared_ptr<const MpiPlaces>;

// Every rank of the job calls, and has the same outcome.
Status meet_in_mpi(const Environment& environment, const RankIdentity& who, Store& store,
                   std::chrono::milliseconds timeout, MpiPlacesPtr* places);

}  // namespace hv::runtime
