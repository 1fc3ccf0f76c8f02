// The shared object beside this library that knows NCCL, opened when a tensor first lies on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/backend/gpu/gpu_plugin.h"

namespace hv::runtime {

// The process's: the first call opens it, and what came of that stays. kUnsupported: there is none,
// it cannot be opened, or is of another build, with where it was looked for.
Status find_gpu_plugin(GpuPlugin** plugin);

// The same of a file.
Status open_gpu_plugin(const std::string& path, GpuPlugin** plugin);

// When it goes, it waits for what backends have left to the GPUs, which peers may need: half a
// minute at most, and tells where that was not enough.
class GpuEnds {
 public:
  GpuEnds() = default;
  ~GpuEnds();
  GpuEnds(const GpuEnds&) = delete;
  GpuEnds& operator=(const GpuEnds&) = delete;
};

}  // namespace hv::runtime
