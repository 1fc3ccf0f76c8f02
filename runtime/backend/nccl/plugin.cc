// The one symbol of libhvrun-nccl.so.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_backend.h"
#include "runtime/backend/plugin_file.h"

namespace {

hv::runtime::GpuPlugin* plugin() {
  static auto* const one = new hv::nccl::NcclPlugin;  // outlives everything, as NCCL's threads do
  return one;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const hv::runtime::GpuPluginEntry hvrun_gpu_plugin;
const hv::runtime::GpuPluginEntry hvrun_gpu_plugin = {hv::runtime::kPluginBuild, plugin};
