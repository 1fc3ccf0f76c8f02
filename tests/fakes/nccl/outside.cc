// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/outside.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "src/base/symbol.h"

namespace hv::fake {

void refuse(const std::string& what) {
  std::fprintf(stderr, "stand-in for NCCL: %s\n", what.c_str());
  std::abort();
}

int version() {
  const char* const told = std::getenv("HVRUN_FAKE_NCCL_VERSION");
  return told == nullptr ? 22803 : std::atoi(told);
}

const CudaFunctions& cuda_functions() {
  static const CudaFunctions functions = [] {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) refuse("the process has opened no libcuda.so.1");
    CudaFunctions found;
    if (!find_function(library, "fake_cuda_view", &found.view) ||
        !find_function(library, "fake_cuda_put", &found.put) ||
        !find_function(library, "fake_cuda_device", &found.device) ||
        !find_function(library, "cuDeviceGetAttribute", &found.attribute) ||
        !find_function(library, "cuMemAlloc_v2", &found.allocate) ||
        !find_function(library, "fake_cuda_unmap", &found.unmap) ||
        !find_function(library, "fake_cuda_forbid_records", &found.forbid_records))
      refuse("libcuda.so.1 is no stand-in");
    return found;
  }();
  return functions;
}

std::byte* host_view(const void* address, std::size_t bytes) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (std::byte* const view = cuda_functions().view(number, bytes); view != nullptr) return view;
  if (bytes > 0 && cuda_functions().view(number, 1) != nullptr)
    refuse("a buffer of " + std::to_string(bytes) + " bytes ends beyond its GPU's memory");
  return static_cast<std::byte*>(const_cast<void*>(address));
}

}  // namespace hv::fake
