// Handles: numbers that a caller holds for its operations. Never used twice in a process, by no
// context.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. A released operation lives on until the engine has completed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "runtime/engine/operation.h"

namespace hv::runtime {

class HandleTable {
 public:
  std::uint64_t add(OperationPtr operation) {
    static std::atomic<std::uint64_t> next{1};
    const std::uint64_t handle = next.fetch_add(1, std::memory_order_relaxed);
    add(handle, std::move(operation));
    return handle;
  }
  // Under the number that another table gave it.
  void add(std::uint64_t handle, OperationPtr operation) {
    const std::lock_guard lock(mutex_);
    operations_[handle] = std::move(operation);
  }
  // nullptr: unknown, released, or another context's.
  OperationPtr find(std::uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.find(handle);
    return found == operations_.end() ? nullptr : found->second;
  }
  // The same, and it is no handle any more.
  OperationPtr take(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.extract(handle);
    return found.empty() ? nullptr : std::move(found.mapped());
  }

 private:
  mutable std::mutex mutex_;  // guards operations_
  std::unordered_map<std::uint64_t, OperationPtr> operations_;
};

}  // namespace hv::runtime
