// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/fake_cuda.h"

#include <cstring>
#include <mutex>

#include "tests/fakes/cuda/device_memory.h"
#include "tests/fakes/cuda/faults.h"
#include "tests/fakes/cuda/world.h"

using namespace hv::fake;

std::byte* fake_cuda_view(std::uintptr_t address, std::size_t bytes) {
  return DeviceMemory::of_process().view(address, bytes);
}

bool fake_cuda_unmap(std::uintptr_t address) {
  if (!DeviceMemory::of_process().free(address)) return false;
  const std::lock_guard lock(world().mutex);
  --world().memory_blocks;
  return true;
}

void fake_cuda_capture(void* stream, bool is_on) {
  FakeStream* const one = stream_of(static_cast<hv::cuda::Stream>(stream));
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
  stream_of(static_cast<hv::cuda::Stream>(stream))->put([=] { work(argument); });
}

void fake_cuda_forbid_records(void* stream, bool is_on) {
  stream_of(static_cast<hv::cuda::Stream>(stream))->forbidden_records += is_on ? 1 : -1;
}

int fake_cuda_device(char* uuid) {
  if (current_contexts.empty()) return -1;
  const int device = current_contexts.back()->device;
  std::memcpy(uuid, uuid_of(device).bytes, sizeof(hv::cuda::Uuid));
  return device;
}

void fake_cuda_faults(const char* list) { Faults::of_process().begin_anew(list); }

int fake_cuda_calls(const char* function) { return Faults::of_process().calls(function); }

int fake_cuda_failures() { return FakeStream::failures(); }

int fake_cuda_urgent_streams() { return world().urgent_streams; }

int fake_cuda_left() {
  const std::lock_guard lock(world().mutex);
  return static_cast<int>(world().streams.size() + world().events.size() +
                          world().host_blocks.size()) +
         world().memory_blocks;
}
