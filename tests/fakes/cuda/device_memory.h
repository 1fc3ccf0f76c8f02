// Memory of the stand-in's GPUs: where a program has its address it cannot be read or written; the
// work on streams goes by another view of it. With HVRUN_FAKE_CUDA_IN_REACH it can, as by a library
// that is aware of CUDA.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hv::fake {

class DeviceMemory {
 public:
  static DeviceMemory& of_process();

  // 0: there is none left (HVRUN_FAKE_CUDA_MEMORY bytes a process; 4 GiB).
  std::uintptr_t allocate(std::size_t bytes, int device);
  // False: no such address was given out.
  bool free(std::uintptr_t address);
  // Where the host reads and writes that address; nullptr: `bytes` from there on are no memory of a
  // GPU's.
  std::byte* view(std::uintptr_t address, std::size_t bytes);
  // -1: no memory of a GPU's.
  int device_of(std::uintptr_t address);

 private:
  struct Block {
    std::size_t bytes = 0;   // asked for
    std::size_t mapped = 0;  // whole pages
    std::byte* view = nullptr;
    int device = 0;
  };
  DeviceMemory();
  // The block that holds the address, and end().
  std::map<std::uintptr_t, Block>::iterator find(std::uintptr_t address);

  std::mutex mutex_;  // guards all below
  std::map<std::uintptr_t, Block> blocks_;
  std::size_t left_ = 0;
  bool is_in_reach_ = false;
};

}  // namespace hv::fake
