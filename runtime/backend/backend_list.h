// The backends of this build, in order of preference: the first that supports a request carries it
// out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/transport/transport.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

// Names that HVRUN_BACKEND accepts, in order of preference.
std::vector<std::string> backend_names();

struct BackendSettings {
  std::string wanted{};      // HVRUN_BACKEND: one of those names, or "" for all that work here
  std::string algorithms{};  // HVRUN_ALGORITHM, rank 0's
  std::string kernels{};     // HVRUN_KERNELS; "": the best here
  bool deterministic = false;
};

// kUnsupported, with what there is instead: for a name that is none of this build's, for kernels
// that this processor does not run, for algorithms that cannot work among `job`'s ranks. The plane
// outlives the backends, which may be those of a set: job is the extent of the whole job.
Status make_backends(DataPlane* plane, const BackendSettings& settings, const JobExtent& job,
                     std::vector<std::unique_ptr<Backend>>* backends);

}  // namespace hv::runtime
