// A stand-in for libcuda.so.1: GPUs that are memory and threads of this process. Streams keep their
// order and nothing else, memory cannot be touched by its address, what CUDA refuses is refused.
// SPDX-License-Identifier: Apache-2.0
//
// HVRUN_FAKE_CUDA_DEVICES: how many GPUs there are (2); 0 is as without any. For faults and delays
// see faults.h.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver_abi.h"
#include "tests/fakes/cuda/device_memory.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/fakes/cuda/fake_stream.h"
#include "tests/fakes/cuda/faults.h"
#include "tests/fakes/cuda/host_kernels.h"

// Whoever defines one of them otherwise than it is called does not compile.
extern "C" {
using namespace hv::cuda;
#define HV_ONE(here, exported, parameters) [[gnu::visibility("default")]] int exported parameters;
HV_CUDA_FUNCTIONS(HV_ONE)
#undef HV_ONE
}

namespace hv::cuda {

struct ContextState {
  int device = 0;
};
struct StreamState {
  std::shared_ptr<fake::FakeStream> stream;
};
struct EventState {
  std::shared_ptr<fake::FakeEvent> event = std::make_shared<fake::FakeEvent>();
};
struct ModuleState {};
struct FunctionState {
  const fake::HostKernel* kernel = nullptr;
};

}  // namespace hv::cuda

namespace {

using hv::fake::DeviceMemory;
using hv::fake::FakeStream;
using hv::fake::Faults;

constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kIllegalAddress = 700;

struct World {
  std::mutex mutex;  // guards sets and captures
  std::vector<ContextState> contexts;
  std::vector<StreamState> default_streams;  // of each device
  std::set<StreamState*> streams;
  std::set<EventState*> events;
  std::set<void*> host_blocks;
  int memory_blocks = 0;
  int captures = 0;
  bool is_capture_broken = false;
  std::atomic<bool> is_begun{false};
};

World& world() {
  static World* const one = new World;
  return *one;
}

thread_local std::vector<Context> current_contexts;
thread_local int capture_mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL

// What CUDA forbids while another thread captures, unless the calling thread allows itself all.
bool breaks_capture() {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  if (all.captures == 0 || capture_mode == kCaptureRelaxed) return false;
  all.is_capture_broken = true;
  return true;
}

FakeStream* stream_of(Stream stream) {
  if (stream != nullptr) return stream->stream.get();
  return world()
      .default_streams[static_cast<std::size_t>(current_contexts.back()->device)]
      .stream.get();
}

enum class Needs { kNothing, kInit, kContext };

// What every function begins with: its fault, if there is one now, and what it needs.
int enter(const char* function, Needs needs, bool* hangs = nullptr) {
  const Faults::Fault fault = Faults::of_process().take(function);
  if (fault.way == Faults::Way::kResult) return fault.result;
  if (hangs != nullptr) *hangs = fault.way == Faults::Way::kHang;
  if (needs != Needs::kNothing && !world().is_begun) return 3;  // CUDA_ERROR_NOT_INITIALIZED
  if (needs == Needs::kContext && current_contexts.empty()) return kInvalidContext;
  return kSuccess;
}

#define HV_ENTER(needs) \
  if (const int refused = enter(__func__, needs); refused != kSuccess) return refused
// For what CUDA's captures forbid.
#define HV_ENTER_UNSAFE(needs) \
  HV_ENTER(needs);             \
  if (breaks_capture()) return kStreamCaptureUnsupported

// Work of a function that can be told to hang.
int put(const char* function, Stream stream, std::function<int()> work) {
  bool hangs = false;
  if (const int refused = enter(function, Needs::kContext, &hangs); refused != kSuccess)
    return refused;
  FakeStream* const to = stream_of(stream);
  if (to->failure() != 0) return to->failure();
  if (hangs) to->hang();
  to->put([to, work = std::move(work)] {
    if (to->failure() != 0) return;
    if (const int result = work(); result != kSuccess) to->fail(result);
  });
  return kSuccess;
}

int count_devices() {
  const char* const told = std::getenv("HVRUN_FAKE_CUDA_DEVICES");
  return told == nullptr ? 2 : std::atoi(told);
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

// ---- the driver and its devices ----

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
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
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
      *value = 9;
      return kSuccess;
    case kComputeCapabilityMinor:
      *value = 0;
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

// HVRUN_FAKE_CUDA_UUID: the first byte of all of them; processes that have the same share GPUs.
int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  const char* const told = std::getenv("HVRUN_FAKE_CUDA_UUID");
  *uuid = {};
  uuid->bytes[0] = static_cast<char>(told == nullptr ? 0 : std::atoi(told));
  uuid->bytes[15] = static_cast<char>(device);
  return kSuccess;
}

int cuDeviceGetPCIBusId(char* address, int room, int device) {
  HV_ENTER(Needs::kInit);
  if (!is_device(device)) return kInvalidDevice;
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", device + 1);
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

int cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  HV_ENTER(Needs::kContext);
  *lowest = 0;
  *highest = -5;
  return kSuccess;
}

// ---- streams and events ----

int cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (flags > kStreamNonBlocking || priority < -5 || priority > 0) return kInvalidValue;
  *stream = new StreamState{FakeStream::start(current_contexts.back()->device)};
  const std::lock_guard lock(world().mutex);
  world().streams.insert(*stream);
  return kSuccess;
}

int cuStreamDestroy_v2(Stream stream) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  if (world().streams.erase(stream) == 0) return kInvalidHandle;
  stream->stream->end();
  delete stream;
  return kSuccess;
}

int cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  HV_ENTER(Needs::kContext);
  if (flags != 0) return kInvalidValue;
  stream_of(stream)->wait_for(event->event);
  return kSuccess;
}

int cuStreamQuery(Stream stream) {
  HV_ENTER_UNSAFE(Needs::kContext);
  FakeStream* const one = stream_of(stream);
  if (one->failure() != 0) return one->failure();
  return one->is_idle() ? kSuccess : kNotReady;
}

int cuStreamSynchronize(Stream stream) {
  HV_ENTER_UNSAFE(Needs::kContext);
  stream_of(stream)->await_idle();
  return stream_of(stream)->failure();
}

int cuStreamIsCapturing(Stream stream, int* status) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  *status = stream_of(stream)->is_captured ? 1 : kCapturesNone;
  return kSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  HV_ENTER(Needs::kNothing);
  if (*mode < 0 || *mode > kCaptureRelaxed) return kInvalidValue;
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cuEventCreate(Event* event, unsigned flags) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (flags > 7) return kInvalidValue;
  *event = new EventState;
  const std::lock_guard lock(world().mutex);
  world().events.insert(*event);
  return kSuccess;
}

int cuEventDestroy_v2(Event event) {
  HV_ENTER(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  if (world().events.erase(event) == 0) return kInvalidHandle;
  delete event;
  return kSuccess;
}

int cuEventRecord(Event event, Stream stream) {
  HV_ENTER(Needs::kContext);
  stream_of(stream)->record(event->event);
  return kSuccess;
}

int cuEventQuery(Event event) {
  HV_ENTER_UNSAFE(Needs::kContext);
  return event->event->has_passed(event->event->latest()) ? kSuccess : kNotReady;
}

int cuEventSynchronize(Event event) {
  HV_ENTER_UNSAFE(Needs::kContext);
  event->event->await(event->event->latest());
  return kSuccess;
}

// ---- memory ----

int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (bytes == 0) return kInvalidValue;
  *address = DeviceMemory::of_process().allocate(bytes, current_contexts.back()->device);
  if (*address == 0) return kOutOfMemory;
  const std::lock_guard lock(world().mutex);
  ++world().memory_blocks;
  return kSuccess;
}

// As the driver's it waits for all that may still use the memory.
int cuMemFree_v2(Address address) {
  HV_ENTER_UNSAFE(Needs::kContext);
  std::vector<std::shared_ptr<FakeStream>> streams;
  {
    const std::lock_guard lock(world().mutex);
    for (const StreamState* one : world().streams) streams.push_back(one->stream);
    for (const StreamState& one : world().default_streams) streams.push_back(one.stream);
  }
  for (const auto& one : streams) one->await_idle();
  if (!DeviceMemory::of_process().free(address)) return kInvalidValue;
  const std::lock_guard lock(world().mutex);
  --world().memory_blocks;
  return kSuccess;
}

int cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (bytes == 0 || flags > 7) return kInvalidValue;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*address == nullptr) return kOutOfMemory;
  const std::lock_guard lock(world().mutex);
  world().host_blocks.insert(*address);
  return kSuccess;
}

int cuMemFreeHost(void* address) {
  HV_ENTER_UNSAFE(Needs::kContext);
  const std::lock_guard lock(world().mutex);
  if (world().host_blocks.erase(address) == 0) return kInvalidValue;
  std::free(address);
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream stream) {
  return put(__func__, stream, [=] {
    std::byte* const target = DeviceMemory::of_process().view(to, bytes);
    if (target == nullptr) return kIllegalAddress;
    std::memcpy(target, from, bytes);
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream stream) {
  return put(__func__, stream, [=] {
    const std::byte* const source = DeviceMemory::of_process().view(from, bytes);
    if (source == nullptr) return kIllegalAddress;
    std::memcpy(to, source, bytes);
    return kSuccess;
  });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream stream) {
  return put(__func__, stream, [=] {
    std::byte* const target = DeviceMemory::of_process().view(to, bytes);
    const std::byte* const source = DeviceMemory::of_process().view(from, bytes);
    if (target == nullptr || source == nullptr) return kIllegalAddress;
    std::memmove(target, source, bytes);
    return kSuccess;
  });
}

int cuMemsetD8Async(Address address, unsigned char value, std::size_t bytes, Stream stream) {
  return put(__func__, stream, [=] {
    std::byte* const target = DeviceMemory::of_process().view(address, bytes);
    if (target == nullptr) return kIllegalAddress;
    std::memset(target, value, bytes);
    return kSuccess;
  });
}

int cuPointerGetAttribute(void* value, int attribute, Address address) {
  HV_ENTER(Needs::kInit);
  const int device = DeviceMemory::of_process().device_of(address);
  if (device < 0) return kInvalidValue;
  switch (attribute) {
    case kPointerMemoryType:
      *static_cast<unsigned*>(value) = kMemoryTypeDevice;
      return kSuccess;
    case kPointerDeviceOrdinal:
      *static_cast<int*>(value) = device;
      return kSuccess;
    case kPointerContext:
      *static_cast<Context*>(value) = &world().contexts[static_cast<std::size_t>(device)];
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

// ---- kernels ----

int cuModuleLoadData(Module* module, const void* image) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (image == nullptr) return kInvalidValue;
  *module = new ModuleState;
  return kSuccess;
}

int cuModuleUnload(Module module) {
  HV_ENTER_UNSAFE(Needs::kContext);
  delete module;
  return kSuccess;
}

// Kept for as long as the process lives, as many as there are kernels.
int cuModuleGetFunction(Function* function, Module module, const char* name) {
  HV_ENTER(Needs::kContext);
  const hv::fake::HostKernel* const kernel = hv::fake::find_host_kernel(name);
  if (module == nullptr || kernel == nullptr) return kNotFound;
  *function = new FunctionState{kernel};
  return kSuccess;
}

int cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream stream, void** arguments, void** extra) {
  if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || extra != nullptr ||
      shared_bytes > 48u << 10 || grid_x == 0 || block_x == 0 || block_x > 1024)
    return kInvalidValue;
  std::vector<std::vector<std::byte>> copies;
  for (std::size_t number = 0; number < function->kernel->argument_bytes.size(); ++number) {
    const auto* const argument = static_cast<const std::byte*>(arguments[number]);
    copies.emplace_back(argument, argument + function->kernel->argument_bytes[number]);
  }
  return put(__func__, stream, [=, run = function->kernel->run]() mutable {
    std::vector<void*> addresses;
    for (std::vector<std::byte>& copy : copies) addresses.push_back(copy.data());
    run({grid_x, block_x}, addresses.data());
    return kSuccess;
  });
}

// ---- what tests ask beside ----

std::byte* fake_cuda_view(std::uintptr_t address, std::size_t bytes) {
  return DeviceMemory::of_process().view(address, bytes);
}

void fake_cuda_capture(void* stream, bool is_on) {
  FakeStream* const one = stream_of(static_cast<Stream>(stream));
  const std::lock_guard lock(world().mutex);
  world().captures += static_cast<int>(is_on) - static_cast<int>(one->is_captured);
  one->is_captured = is_on;
  if (is_on) world().is_capture_broken = false;
}

bool fake_cuda_broke_capture() {
  const std::lock_guard lock(world().mutex);
  return world().is_capture_broken;
}

void fake_cuda_put(void* stream, void (*work)(void*), void* argument) {
  stream_of(static_cast<Stream>(stream))->put([=] { work(argument); });
}

void fake_cuda_faults(const char* list) { Faults::of_process().begin_anew(list); }

int fake_cuda_left() {
  const std::lock_guard lock(world().mutex);
  return static_cast<int>(world().streams.size() + world().events.size() +
                          world().host_blocks.size()) +
         world().memory_blocks;
}
