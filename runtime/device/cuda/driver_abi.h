// What of CUDA's driver interface is called: its types, numbers and functions, so that no header of
// it is needed. A unit test compares these with cuda.h where that is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hv::cuda {

// CUresult
constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;
constexpr int kDeinitialized = 4;
constexpr int kNoDevice = 100;
constexpr int kInvalidImage = 200;
constexpr int kNoBinaryForGpu = 209;
constexpr int kInvalidPtx = 218;
constexpr int kJitCompilerNotFound = 221;
constexpr int kUnsupportedPtxVersion = 222;
constexpr int kJitCompilationDisabled = 223;
constexpr int kNotReady = 600;
constexpr int kStreamCaptureUnsupported = 900;
constexpr int kStreamCaptureImplicit = 906;

// CUdevice_attribute
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMultiprocessorCount = 16;
constexpr int kMemoryPoolsSupported = 115;

constexpr unsigned kEventDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
constexpr unsigned kStreamNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
constexpr unsigned kHostPortable = 1;        // CU_MEMHOSTALLOC_PORTABLE
constexpr int kCapturesNone = 0;             // CU_STREAM_CAPTURE_STATUS_NONE
constexpr int kCaptureRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kPointerContext = 1;           // CU_POINTER_ATTRIBUTE_CONTEXT
constexpr int kPointerMemoryType = 2;        // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kPointerDeviceOrdinal = 9;     // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr int kMemoryTypeDevice = 2;         // CU_MEMORYTYPE_DEVICE

// The driver knows what these point to.
using Context = struct ContextState*;
using Stream = struct StreamState*;
using Event = struct EventState*;
using Module = struct ModuleState*;
using Function = struct FunctionState*;
using Address = unsigned long long;  // CUdeviceptr

struct Uuid {
  char bytes[16];
};

// ONE(what it is called here, its exported name, its parameters). All return a CUresult. Those that
// have been changed since carry the version that is declared here in their names.
#define HV_CUDA_FUNCTIONS(ONE)                                                                     \
  ONE(init, cuInit, (unsigned flags))                                                              \
  ONE(driver_version, cuDriverGetVersion, (int* version))                                          \
  ONE(error_name, cuGetErrorName, (int error, const char** name))                                  \
  ONE(error_words, cuGetErrorString, (int error, const char** words))                              \
  ONE(device_count, cuDeviceGetCount, (int* count))                                                \
  ONE(device, cuDeviceGet, (int* device, int ordinal))                                             \
  ONE(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, int device))             \
  ONE(device_name, cuDeviceGetName, (char* name, int room, int device))                            \
  ONE(device_uuid, cuDeviceGetUuid_v2, (Uuid * uuid, int device))                                  \
  ONE(device_pci_address, cuDeviceGetPCIBusId, (char* address, int room, int device))              \
  ONE(retain_context, cuDevicePrimaryCtxRetain, (Context * context, int device))                   \
  ONE(release_context, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
  ONE(push_context, cuCtxPushCurrent_v2, (Context context))                                        \
  ONE(pop_context, cuCtxPopCurrent_v2, (Context * context))                                        \
  ONE(current_device, cuCtxGetDevice, (int* device))                                               \
  ONE(stream_priorities, cuCtxGetStreamPriorityRange, (int* lowest, int* highest))                 \
  ONE(make_stream, cuStreamCreateWithPriority, (Stream * stream, unsigned flags, int priority))    \
  ONE(destroy_stream, cuStreamDestroy_v2, (Stream stream))                                         \
  ONE(stream_wait, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                \
  ONE(stream_query, cuStreamQuery, (Stream stream))                                                \
  ONE(stream_synchronize, cuStreamSynchronize, (Stream stream))                                    \
  ONE(stream_captures, cuStreamIsCapturing, (Stream stream, int* status))                          \
  ONE(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int* mode))                       \
  ONE(make_event, cuEventCreate, (Event * event, unsigned flags))                                  \
  ONE(destroy_event, cuEventDestroy_v2, (Event event))                                             \
  ONE(record_event, cuEventRecord, (Event event, Stream stream))                                   \
  ONE(event_query, cuEventQuery, (Event event))                                                    \
  ONE(event_synchronize, cuEventSynchronize, (Event event))                                        \
  ONE(allocate, cuMemAlloc_v2, (Address * address, std::size_t bytes))                             \
  ONE(free, cuMemFree_v2, (Address address))                                                       \
  ONE(allocate_host, cuMemHostAlloc, (void** address, std::size_t bytes, unsigned flags))          \
  ONE(free_host, cuMemFreeHost, (void* address))                                                   \
  ONE(copy_to_device, cuMemcpyHtoDAsync_v2,                                                        \
      (Address to, const void* from, std::size_t bytes, Stream stream))                            \
  ONE(copy_to_host, cuMemcpyDtoHAsync_v2,                                                          \
      (void* to, Address from, std::size_t bytes, Stream stream))                                  \
  ONE(copy_on_device, cuMemcpyDtoDAsync_v2,                                                        \
      (Address to, Address from, std::size_t bytes, Stream stream))                                \
  ONE(fill, cuMemsetD8Async,                                                                       \
      (Address address, unsigned char value, std::size_t bytes, Stream stream))                    \
  ONE(pointer_attribute, cuPointerGetAttribute, (void* value, int attribute, Address address))     \
  ONE(load_module, cuModuleLoadData, (Module * module, const void* image))                         \
  ONE(unload_module, cuModuleUnload, (Module module))                                              \
  ONE(module_function, cuModuleGetFunction,                                                        \
      (Function * function, Module module, const char* name))                                      \
  ONE(launch, cuLaunchKernel,                                                                      \
      (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments, \
       void** extra))

// nullptr where the driver is older.
#define HV_CUDA_NEWER_FUNCTIONS(ONE) \
  ONE(stream_id, cuStreamGetId, (Stream stream, unsigned long long* id)) /* 12.0 */

}  // namespace hv::cuda
