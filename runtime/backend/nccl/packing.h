// Where the pieces of a fused operation lie in its bucket, and which of them need not be moved.
// SPDX-License-Identifier: Apache-2.0
//
// A bucket is the segments one behind the other, each at a multiple of 16 bytes, which is what a
// GPU reads best; what lies in the gaps is reduced with the rest and is no tensor's. NCCL sees only
// its bytes, so each rank may have it where it likes: in a buffer, or, where its tensors lie like
// that already and without gaps, in the tensors themselves. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/collective/collective.h"

namespace hv::nccl {

// Between a tensor and its place in the bucket, where it is of the wire type.
struct Move {
  std::size_t offset = 0;           // of the place, in bytes
  std::int64_t count = 0;           // elements
  const std::byte* from = nullptr;  // of a way in; nullptr: zeros
  std::byte* to = nullptr;          // of a way out
};

struct Packing {
  std::size_t bytes = 0;
  std::int64_t count = 0;            // elements of the wire type, those in gaps too
  const std::byte* input = nullptr;  // the bucket as it lies; nullptr: moves_in make it
  std::byte* output = nullptr;       // nullptr: moves_out make the results
  std::vector<Move> moves_in, moves_out;
};

// A segment that lies nowhere here (of a rank that has joined) gives zeros and takes nothing.
// scales_in, scales_out: all of it is moved on that way, for the kernels scale what they move.
Packing plan_packing(const runtime::CollectiveRequest& request, bool scales_in, bool scales_out);

}  // namespace hv::nccl
