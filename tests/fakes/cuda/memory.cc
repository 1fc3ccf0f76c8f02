// Memory of the devices and of the host, and copies between them.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/fakes/cuda/device_memory.h"
#include "tests/fakes/cuda/world.h"

namespace hv::cuda {

using namespace fake;

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
    for (const auto& one : world().ending)
      if (auto stream = one.lock()) streams.push_back(std::move(stream));
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

}  // namespace hv::cuda
