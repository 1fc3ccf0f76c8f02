// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/gpu/plugin_library.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "src/base/clock.h"
#include "src/base/log.h"

namespace hv::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libhvrun-nccl.so";

Status unusable(const std::string& path, const std::string& reason) {
  return {StatusCode::kUnsupported,
          "use NCCL: " + path + ": " + reason + "; try: install hvrun anew, as a whole"};
}

// Beside the file that this code is in, or in lib beside its folder: programs that have all of it
// in themselves.
std::string plugin_path() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&open_gpu_plugin), &info) == 0 ||
      info.dli_fname == nullptr)
    return kName;
  std::error_code trouble;
  const fs::path own = fs::canonical(info.dli_fname, trouble);
  const fs::path beside = own.parent_path() / kName;
  const fs::path in_lib = own.parent_path().parent_path() / "lib" / kName;
  return (!fs::exists(beside, trouble) && fs::exists(in_lib, trouble) ? in_lib : beside).string();
}

}  // namespace

Status open_gpu_plugin(const std::string& path, GpuPlugin** plugin) {
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    return unusable(path, reason != nullptr ? reason : "cannot be opened");
  }
  const auto* const entry = static_cast<const GpuPluginEntry*>(::dlsym(opened, kGpuPluginSymbol));
  if (entry == nullptr) return unusable(path, "it is not hvrun's");
  if (std::strcmp(entry->build, kPluginBuild) != 0) {
    return unusable(
        path, std::string("it is of hvrun ") + entry->build + ", and libhvrun is " + kPluginBuild);
  }
  *plugin = entry->plugin();
  return Status::success();
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
    one.status = open_gpu_plugin(plugin_path(), &one.plugin);
    opened_plugin = one.plugin;
    return one;
  }();
  *plugin = found.plugin;
  return found.status;
}

GpuEnds::~GpuEnds() {
  GpuPlugin* const plugin = opened_plugin;
  if (plugin == nullptr || plugin->await_ends(now() + kEndsWithin)) return;
  HV_LOG(kWarn, "backend") << "GPUs have not done within " << kEndsWithin.count()
                           << " s of the end what they were given; try: wait for the GPU's work "
                              "before hvd.shutdown() or hvrun_shutdown, where its results count";
}

}  // namespace hv::runtime
