// Allreduces of ranks that share a GPU, by libhvrun and by bare NCCL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "bench/gpu/gpu.h"
#include "runtime/backend/nccl/nccl_library.h"

namespace bench {

struct RanksWanted {
  int ranks = 1;
  std::string gradients;  // a list of them: bench/gradients
  int calls = 1, rounds = 1;
};

// Ranks are threads of this process, each with a context of libhvrun's and a communicator of its
// own. Figures are rank 0's:
//   direct-SIZE    one tensor after the other, beside nccl-SIZE, as many bare ncclAllReduce
//   enqueue-SIZE   what an enqueue of those costs the host
//   fused          a model's gradients, each a tensor, beside bucket: one bare ncclAllReduce of
//                  them all between the pack of the first 25 MiB and the unpack of the last
void measure_ranks(const Gpu& gpu, const std::shared_ptr<const hv::nccl::Library>& library,
                   const RanksWanted& wanted, Figures* figures);

}  // namespace bench
