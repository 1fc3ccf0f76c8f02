// The driver, its devices and their contexts.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tests/fakes/cuda/world.h"

// HVRUN_FAKE_CUDA_UUID: the first byte of all of them; processes that have the same share GPUs.
// Without it every process has GPUs of its own.
hv::cuda::Uuid hv::fake::uuid_of(int device) {
  cuda::Uuid uuid = {};
  if (const char* const told = std::getenv("HVRUN_FAKE_CUDA_UUID"); told != nullptr) {
    uuid.bytes[0] = static_cast<char>(std::atoi(told));
  } else {
    const pid_t own = ::getpid();
    std::memcpy(uuid.bytes + 1, &own, sizeof own);
  }
  uuid.bytes[15] = static_cast<char>(device);
  return uuid;
}

namespace hv::cuda {

using namespace fake;

namespace {

int count_devices() {
  const char* const told = std::getenv("HVRUN_FAKE_CUDA_DEVICES");
  return told == nullptr ? 2 : std::atoi(told);
}

// HVRUN_FAKE_CUDA_CAPABILITY: ten times the compute capability (90).
int compute_capability() {
  const char* const told = std::getenv("HVRUN_FAKE_CUDA_CAPABILITY");
  return told == nullptr ? 90 : std::atoi(told);
}

bool is_device(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < world().contexts.size();
}

int copy_text(const std::string& text, char* room, int bytes) {
  if (bytes <= static_cast<int>(text.size())) return kInvalidValue;
  std::memcpy(room, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

int cuInit(unsigned flags) {
  HV_ENTER(Needs::kNothing);
  if (flags != 0) return kInvalidValue;
  World& all = world();
  const std::lock_guard lock(all.mutex);
  const int devices = count_devices();
  if (devices <= 0) return kNoDevice;
  if (all.is_begun) return kSuccess;
  for (int device = 0; device < devices; ++device) {
    all.contexts.push_back({device});
    all.default_streams.push_back({FakeStream::start(device)});
  }
  all.is_begun = true;
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  HV_ENTER(Needs::kNothing);
  *version = 13000;
  return kSuccess;
}

int cuGetErrorName(int error, const char** name) {
  static const std::pair<int, const char*> names[] = {
      {kSuccess, "CUDA_SUCCESS"},
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {kNotReady, "CUDA_ERROR_NOT_READY"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
  for (const auto& [number, text] : names) {
    if (number != error) continue;
    *name = text;
    return kSuccess;
  }
  *name = nullptr;
  return kInvalidValue;
}

int cuGetErrorString(int error, const char** words) {
  const char* name = nullptr;
  *words = cuGetErrorName(error, &name) == kSuccess ? "as the stand-in was told" : nullptr;
  return name == nullptr ? kInvalidValue : kSuccess;
}

int cuDeviceGetCount(int* count) {
  HV_ENTER(Needs::kInit);
  *count = static_cast<int>(world().contexts.size());
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  HV_ENTER(Needs::kInit);
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  switch (attribute) {
    case kComputeCapabilityMajor:
      *value = compute_capability() / 10;
      return kSuccess;
    case kComputeCapabilityMinor:
      *value = compute_capability() % 10;
      return kSuccess;
    case kMultiprocessorCount:
      *value = 4;
      return kSuccess;
    case kMemoryPoolsSupported:
      *value = 0;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

int cuDeviceGetName(char* name, int room, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  return copy_text("stand-in for a GPU", name, room);
}

int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  *uuid = uuid_of(device);
  return kSuccess;
}

int cuDeviceGetPCIBusId(char* address, int room, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  char text[32];
  unsigned own = 0;  // processes have GPUs of their own, or share them
  std::memcpy(&own, uuid_of(device).bytes, sizeof own);
  std::snprintf(text, sizeof text, "%08X:%02X:00.0", own, device + 1);
  return copy_text(text, address, room);
}

int cuDevicePrimaryCtxRetain(Context* context, int device) {
  HV_ENTER_UNSAFE(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  *context = &world().contexts[static_cast<std::size_t>(device)];
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  HV_ENTER(Needs::kInit);
  return is_device(device) ? kSuccess : kInvalidDevice;
}

int cuCtxPushCurrent_v2(Context context) {
  HV_ENTER(Needs::kInit);
  if (context == nullptr) return kInvalidContext;
  current_contexts.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(Context* context) {
  HV_ENTER(Needs::kContext);
  if (context != nullptr) *context = current_contexts.back();
  current_contexts.pop_back();
  return kSuccess;
}

int cuCtxGetDevice(int* device) {
  HV_ENTER(Needs::kContext);
  *device = current_contexts.back()->device;
  return kSuccess;
}

int cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  HV_ENTER(Needs::kContext);
  *lowest = 0;
  *highest = kHighestPriority;
  return kSuccess;
}

}  // namespace hv::cuda
