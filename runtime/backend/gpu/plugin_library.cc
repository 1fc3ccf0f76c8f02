// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/gpu/plugin_library.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>

#include "runtime/backend/plugin_file.h"
#include "src/base/clock.h"
#include "src/base/log.h"

namespace hv::runtime {
namespace {

constexpr const char* kName = "libhvrun-nccl.so";

}  // namespace

Status open_gpu_plugin(const std::string& path, GpuPlugin** plugin) {
  const void* entry = nullptr;
  Status status = open_plugin("NCCL", path, kGpuPluginSymbol, RTLD_LOCAL, &entry);
  if (status.ok()) *plugin = static_cast<const GpuPluginEntry*>(entry)->plugin();
  return status;
}

namespace {

constexpr std::chrono::seconds kEndsWithin{30};
std::atomic<GpuPlugin*> opened_plugin{nullptr};

}  // namespace

Status find_gpu_plugin(GpuPlugin** plugin) {
  struct Found {
    GpuPlugin* plugin = nullptr;
    Status status;
  };
  static const Found found = [] {
    Found one;
    one.status = open_gpu_plugin(plugin_path(kName), &one.plugin);
    opened_plugin = one.plugin;
    return one;
  }();
  *plugin = found.plugin;
  return found.status;
}

GpuEnds::~GpuEnds() {
  GpuPlugin* const plugin = opened_plugin;
  if (plugin == nullptr || plugin->await_ends(now() + kEndsWithin)) return;
  HV_LOG(kWarn, "backend") << "GPUs have not done within " << format_duration(kEndsWithin)
                           << " of the end what they were given; try: wait for the GPU's work "
                              "before hvd.shutdown() or hvrun_shutdown, where its results count";
}

}  // namespace hv::runtime
