// WindowTable: the memory that members of a process set have had allocated together, by which they
// may reduce tensors without a copy.
// SPDX-License-Identifier: Apache-2.0
//
// A device's library chooses its way on each rank alone, by whether a tensor lies in such memory.
// So that must be agreed on like a tensor's shape: which piece, and where in it, is part of an
// allreduce's description. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/engine/operation.h"
#include "src/base/status.h"

namespace hv::runtime {

class WindowTable {
 public:
  // It stays there as long as the set does. number: the same for all members, from 1 on.
  void add(const std::byte* begin, std::size_t bytes, std::uint32_t number);
  // Of a tensor on a device: writes into the description where it lies. kUnsupported: it lies in
  // such memory, and the operation is none that goes by it.
  Status describe(Operation& operation) const;

 private:
  struct Window {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    std::uint32_t number = 0;
  };
  const Window* that_meets(const std::byte* memory, std::size_t bytes) const;

  std::atomic<bool> is_empty_{true};  // so that others need no lock
  mutable std::mutex mutex_;
  std::vector<Window> windows_;
};

}  // namespace hv::runtime
