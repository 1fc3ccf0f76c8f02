// The tensor queue: what callers have enqueued and the engine has not completed, by name.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call; nothing blocks beyond a short mutex.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/engine/observation.h"
#include "runtime/engine/operation.h"

namespace hv::runtime {

class TensorQueue {
 public:
  explicit TensorQueue(ObservationPtr observation = nullptr)
      : observation_(or_own(std::move(observation))) {}

  // kDuplicate for a name in flight; the reason of close() after it.
  Status add(OperationPtr operation);
  // What was added since the last call, in order.
  std::vector<OperationPtr> take_new();
  bool has_new() const { return has_new_.load(std::memory_order_acquire); }
  // An operation that is in flight; nullptr otherwise.
  OperationPtr find(const std::string& name) const;
  // Takes it out, then lets it be seen as done: its name may be used again by whoever sees that.
  void complete(const OperationPtr& operation, Status outcome);
  // What add() would answer after close(), for this operation; success before.
  Status closed(const Operation& operation) const;
  // From now on add() answers with this reason. The first reason stays. Short of memory for the
  // words, with the code alone.
  void close(const Status& reason);
  // Everything in flight, in no order.
  std::vector<OperationPtr> in_flight() const;
  // Completes everything in flight; where memory for the words is short, with the code alone.
  void fail_all(const Status& reason);
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

 private:
  void count(const Operation& operation, bool is_success);

  const ObservationPtr observation_;
  mutable std::mutex mutex_;  // guards in_flight_, new_, closed_
  std::unordered_map<std::string, OperationPtr> in_flight_;
  std::vector<OperationPtr> new_;
  Status closed_;
  std::atomic<bool> has_new_{false};
  std::atomic<std::size_t> count_{0};
};

}  // namespace hv::runtime
