// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace hv::fake {

DeviceMemory& DeviceMemory::of_process() {
  static DeviceMemory* const memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory() {
  const char* const bytes = std::getenv("HVRUN_FAKE_CUDA_MEMORY");
  is_in_reach_ = std::getenv("HVRUN_FAKE_CUDA_IN_REACH") != nullptr;
  left_ = bytes == nullptr ? std::size_t{4} << 30 : std::stoull(bytes);
}

std::uintptr_t DeviceMemory::allocate(std::size_t bytes, int device) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page - 1) / page * page;
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || mapped > left_) return 0;
  const int file = ::memfd_create("stand-in for a GPU's memory", MFD_CLOEXEC);
  if (file < 0) return 0;
  void* given = MAP_FAILED;
  void* view = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(mapped)) == 0) {
    given = ::mmap(nullptr, mapped, is_in_reach_ ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED,
                   file, 0);
    view = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (given == MAP_FAILED || view == MAP_FAILED) {
    if (given != MAP_FAILED) ::munmap(given, mapped);
    if (view != MAP_FAILED) ::munmap(view, mapped);
    return 0;
  }
  left_ -= mapped;
  const auto address = reinterpret_cast<std::uintptr_t>(given);
  blocks_[address] = {bytes, mapped, static_cast<std::byte*>(view), device};
  return address;
}

bool DeviceMemory::free(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  ::munmap(reinterpret_cast<void*>(address), block->second.mapped);
  ::munmap(block->second.view, block->second.mapped);
  left_ += block->second.mapped;
  blocks_.erase(block);
  return true;
}

std::map<std::uintptr_t, DeviceMemory::Block>::iterator DeviceMemory::find(std::uintptr_t address) {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto block = std::prev(after);
  return address < block->first + block->second.bytes ? block : blocks_.end();
}

std::byte* DeviceMemory::view(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto block = find(address);
  if (block == blocks_.end() || bytes > block->first + block->second.bytes - address)
    return nullptr;
  return block->second.view + (address - block->first);
}

int DeviceMemory::device_of(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = find(address);
  return block == blocks_.end() ? -1 : block->second.device;
}

}  // namespace hv::fake
