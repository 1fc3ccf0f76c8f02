// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>

#include "src/base/symbol.h"

namespace hv::cuda {
namespace {

// The name of the first function that the library lacks; empty: it has all.
std::string find_functions(void* library, DriverFunctions* functions) {
#define HV_ONE(here, exported, parameters) \
  if (!find_function(library, #exported, &functions->here)) return #exported;
  HV_CUDA_FUNCTIONS(HV_ONE)
#undef HV_ONE
#define HV_ONE(here, exported, parameters) find_function(library, #exported, &functions->here);
  HV_CUDA_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
  return {};
}

Status unusable(const std::string& library, const std::string& reason, const std::string& advice) {
  return {StatusCode::kUnsupported,
          "use GPUs by CUDA's driver: " + library + ": " + reason + "; try: " + advice};
}

}  // namespace

Status Driver::open(const std::string& library, std::shared_ptr<const Driver>* made) {
  // Never closed: the driver has threads of its own.
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    return unusable(library, reason != nullptr ? reason : "cannot be opened",
                    "install NVIDIA's driver, or give the container access to it (--gpus all)");
  }
  std::shared_ptr<Driver> driver(new Driver);
  if (const std::string missing = find_functions(opened, &driver->functions_); !missing.empty())
    return unusable(library, "it has no " + missing, "a driver of CUDA 11.4 or newer");
  if (Status begun = driver->begin(library); !begun.ok()) return begun;
  *made = std::move(driver);
  return Status::success();
}

Status Driver::begin(const std::string& library) {
  if (const int result = functions_.init(0); result != kSuccess) {
    return unusable(library, "cuInit: " + words_of(result),
                    result == kNoDevice ? "a host with a GPU, or CUDA_VISIBLE_DEVICES unset"
                                        : "nvidia-smi, which says more of it");
  }
  if (Status known = check(functions_.driver_version(&version_), "ask for the driver's version");
      !known.ok())
    return known;
  return check(functions_.device_count(&devices_), "count the GPUs");
}

Status Driver::check(int result, std::string_view doing) const {
  if (result == kSuccess) return Status::success();
  return {StatusCode::kSystem, std::string(doing) + ": " + words_of(result)};
}

// Of numbers that are none of its own the driver has no words.
std::string Driver::words_of(int result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (functions_.error_name(result, &name) != kSuccess || name == nullptr)
    return "error " + std::to_string(result) + " of CUDA's driver";
  if (functions_.error_words(result, &words) != kSuccess || words == nullptr) return name;
  return std::string(name) + " (" + words + ")";
}

}  // namespace hv::cuda
