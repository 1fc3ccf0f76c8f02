// The backends of this build, in order of preference: the first that supports a request carries it
// out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/gpu/gpu_plugin.h"
#include "runtime/backend/mpi/mpi_library.h"
#include "runtime/transport/transport.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

struct BackendSettings {
  std::string wanted{};      // HVRUN_BACKEND, rank 0's: "" for NCCL and native
  std::string algorithms{};  // HVRUN_ALGORITHM, rank 0's
  std::string kernels{};     // HVRUN_KERNELS; "": the best here
  bool deterministic = false;
  MpiPlacesPtr mpi{};  // of the job's ranks; nullptr: MPI is not wanted
  // Wakes whoever drives; called by any thread while there are backends.
  std::function<void()> ring{};
  std::shared_ptr<GpuJob> job = std::make_shared<GpuJob>();
};

// Who carries what, in words: "on the host's memory mpi (Open MPI v4.1.4), native; on GPUs' memory
// nccl, else through the host's".
std::string carriers_in_words(const BackendSettings& settings);

struct BackendSet {
  std::vector<std::unique_ptr<Backend>> owned;
  std::vector<Backend*> carriers;  // of those, in order of preference
  PairCarrier* pairs = nullptr;    // of sends and receives, where that is not the fabric
};

// kUnsupported, with what there is instead: for a name that is none, for kernels that this
// processor does not run, for algorithms that cannot work among `job`'s ranks. The plane outlives
// the backends, which may be those of a set: members: its ranks in the job, and job is the extent
// of the whole job.
Status make_backends(DataPlane* plane, const BackendSettings& settings,
                     const std::vector<int>& members, const JobExtent& job, BackendSet* backends);

}  // namespace hv::runtime
