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

}  // namespace hv::runtime
