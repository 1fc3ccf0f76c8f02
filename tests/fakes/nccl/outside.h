// What the stand-in for NCCL finds outside: the stand-in for CUDA in the same process, and the
// words for a test that cannot go on.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/device/cuda/driver_abi.h"
#include "tests/fakes/cuda/fake_cuda.h"

namespace hv::fake {

// The test is wrong, or the backend: NCCL would hang here, or compute something else.
[[noreturn]] void refuse(const std::string& what);

// HVRUN_FAKE_NCCL_VERSION, as ncclGetVersion answers (22803).
int version();

struct CudaFunctions {
  decltype(&fake_cuda_view) view = nullptr;
  decltype(&fake_cuda_put) put = nullptr;
  decltype(&fake_cuda_device) device = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
  int (*allocate)(cuda::Address* address, std::size_t bytes) = nullptr;
  decltype(&fake_cuda_unmap) unmap = nullptr;
  decltype(&fake_cuda_forbid_records) forbid_records = nullptr;
};

// Of the libcuda.so.1 that the process has opened; refuses where there is none.
const CudaFunctions& cuda_functions();

// Where the host reads and writes `bytes` of a GPU's memory or of its own.
std::byte* host_view(const void* address, std::size_t bytes);

}  // namespace hv::fake
