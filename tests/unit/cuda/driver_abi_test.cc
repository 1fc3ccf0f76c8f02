// Holds what is declared of CUDA's driver interface against its own header, where that is
// installed.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/driver_abi.h"

#include <doctest/doctest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include "tests/unit/called_alike.h"

using namespace hv::cuda;

TEST_CASE("CUDA's driver functions are called as its header declares them"){
#define HV_ONE(here, exported, parameters)                                                        \
  {                                                                                               \
    const bool is_alike = hv::CalledAlike<CUresult, decltype(::exported), int parameters>::value; \
    CHECK_MESSAGE(is_alike, #exported);                                                           \
  }
    HV_CUDA_FUNCTIONS(HV_ONE) HV_CUDA_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
}

TEST_CASE("the numbers and types of CUDA's driver are those of its header") {
  const long long numbers[][2] = {
      {kSuccess, CUDA_SUCCESS},
      {kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {kDeinitialized, CUDA_ERROR_DEINITIALIZED},
      {kNoDevice, CUDA_ERROR_NO_DEVICE},
      {kInvalidImage, CUDA_ERROR_INVALID_IMAGE},
      {kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {kInvalidPtx, CUDA_ERROR_INVALID_PTX},
      {kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND},
      {kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED},
      {kNotReady, CUDA_ERROR_NOT_READY},
      {kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT},
      {kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
      {kEventDisableTiming, CU_EVENT_DISABLE_TIMING},
      {kStreamNonBlocking, CU_STREAM_NON_BLOCKING},
      {kHostPortable, CU_MEMHOSTALLOC_PORTABLE},
      {kCapturesNone, CU_STREAM_CAPTURE_STATUS_NONE},
      {kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED},
      {kPointerContext, CU_POINTER_ATTRIBUTE_CONTEXT},
      {kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE},
  };
  for (const auto& [ours, own] : numbers) CHECK(ours == own);
  CHECK(sizeof(Context) == sizeof(CUcontext));
  CHECK(sizeof(Stream) == sizeof(CUstream));
  CHECK(sizeof(Event) == sizeof(CUevent));
  CHECK(sizeof(Module) == sizeof(CUmodule));
  CHECK(sizeof(Function) == sizeof(CUfunction));
  CHECK(sizeof(Address) == sizeof(CUdeviceptr));
  CHECK(sizeof(Uuid) == sizeof(CUuuid));
}

#endif
