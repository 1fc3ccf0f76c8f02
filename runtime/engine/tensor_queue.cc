// A map by name and a list of what is new, under one mutex.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tensor_queue.h"

#include <new>

#include "runtime/engine/attempt.h"

namespace hv::runtime {
namespace {

Status status_of(const Operation& operation, const Status& reason) {
  return {reason.code, tensor_words(operation.name) + ": " + reason.message};
}

}  // namespace

Status TensorQueue::add(OperationPtr operation) {
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return status_of(*operation, closed_);
  const auto [place, is_new] = in_flight_.try_emplace(operation->name, operation);
  if (!is_new) {
    return {StatusCode::kDuplicate,
            tensor_words(operation->name) +
                " is in flight already: wait for it, or give this one another name"};
  }
  try {
    new_.push_back(std::move(operation));
  } catch (const std::bad_alloc&) {
    in_flight_.erase(place);  // nobody would ever take it
    throw;
  }
  count_.fetch_add(1, std::memory_order_release);
  has_new_.store(true, std::memory_order_release);
  return Status::success();
}

std::vector<OperationPtr> TensorQueue::take_new() {
  if (!has_new()) return {};
  const std::lock_guard lock(mutex_);
  has_new_.store(false, std::memory_order_relaxed);
  return std::exchange(new_, {});
}

OperationPtr TensorQueue::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(name);
  return found == in_flight_.end() ? nullptr : found->second;
}

void TensorQueue::complete(const OperationPtr& operation, Status outcome) {
  {
    const std::lock_guard lock(mutex_);
    in_flight_.erase(operation->name);
  }
  count_.fetch_sub(1, std::memory_order_release);
  attempt([&] { observation_->timeline.completed(*operation); });  // memory may be short
  count(*operation, outcome.ok());
  operation->outcome = std::move(outcome);
  operation->is_done.store(true, std::memory_order_release);
}

void TensorQueue::count(const Operation& operation, bool is_success) {
  Counters& counters = observation_->counters;
  ++(is_success ? counters.completed : counters.failed);
  if (!is_success || is_set_change(operation.description.kind)) return;
  const TensorDescription& description = operation.description;
  const bool varies = has_own_extents(description.kind);
  const std::int64_t given = description.bytes() * (varies ? operation.first_extent : 1);
  if (operation.input != nullptr) counters.input_bytes.add(static_cast<std::uint64_t>(given));
  counters.result_bytes.add(operation.result_bytes);
  if (description.kind != CollectiveKind::kSparseAllreduce) return;
  const std::size_t index = element_size(description.index_type);
  counters.input_bytes.add(static_cast<std::uint64_t>(operation.first_extent) * index);
  counters.result_bytes.add(static_cast<std::uint64_t>(operation.result_shape[0]) * index);
}

Status TensorQueue::closed(const Operation& operation) const {
  const std::lock_guard lock(mutex_);
  return closed_.ok() ? Status::success() : status_of(operation, closed_);
}

void TensorQueue::close(const Status& reason) {
  const std::lock_guard lock(mutex_);
  if (closed_.ok()) closed_ = in_words_if_possible(reason.code, [&] { return reason; });
}

std::vector<OperationPtr> TensorQueue::in_flight() const {
  const std::lock_guard lock(mutex_);
  std::vector<OperationPtr> operations;
  for (const auto& [name, operation] : in_flight_) operations.push_back(operation);
  return operations;
}

void TensorQueue::fail_all(const Status& reason) {
  std::unordered_map<std::string, OperationPtr> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(in_flight_);
  }
  for (const auto& [name, operation] : all) {
    complete(operation, in_words_if_possible(reason.code, [&, &one = *operation] {
               return status_of(one, reason);
             }));
  }
}

}  // namespace hv::runtime
