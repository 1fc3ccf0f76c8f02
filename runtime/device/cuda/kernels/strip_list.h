// What a launch of the kernels is told: its strips, and how they are shared out.
// SPDX-License-Identifier: Apache-2.0
//
// Read by the host, which fills it, and by the kernels, which have it by value: 4096 bytes are the
// most that all drivers pass to a kernel. So no table has to be copied into the GPU's memory, kept
// there until the launch is over, and given back. Newer drivers would pass 32 KB, but one more
// launch for every 169 tensors is a few microseconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/also_on_gpu.h"

namespace hv::cuda {

constexpr unsigned kBlockThreads = 256;       // of a block
constexpr std::uint32_t kChunkBytes = 16384;  // of the wider of its two types
constexpr std::uint32_t kMostStrips = 169;

HV_ALSO_ON_GPU constexpr std::uint32_t chunk_elements(std::size_t from_bytes,
                                                      std::size_t to_bytes) {
  return kChunkBytes / static_cast<std::uint32_t>(from_bytes > to_bytes ? from_bytes : to_bytes);
}

// Chunks: what a block moves at a time. All strips' are numbered in their order; those of a strip
// are whole but the last.
struct ListedStrip {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t end = 0;   // the number behind its last chunk's
  std::uint32_t last = 0;  // elements in that chunk
};

// value * factor / divisor. The divisor is of integers only, and truncates towards zero.
struct Scaling {
  double factor = 1;
  std::int64_t divisor = 1;
};

struct StripList {
  Scaling scaling;
  std::uint32_t count = 0;   // of strips
  std::uint32_t chunks = 0;  // of all strips
  ListedStrip strips[kMostStrips];
};
static_assert(sizeof(StripList) <= 4096);

}  // namespace hv::cuda
