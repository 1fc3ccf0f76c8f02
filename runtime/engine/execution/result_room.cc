// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/result_room.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace hv::runtime {
namespace {

// The sum of the extents; none when it, or the bytes of so many rows, is beyond any memory. All
// ranks know these numbers, so all of them find the same.
std::optional<std::int64_t> gathered_extent(const std::vector<std::int64_t>& first_extents,
                                            std::int64_t row_bytes) {
  std::int64_t sum = 0, bytes = 0;
  for (const std::int64_t extent : first_extents) {
    if (__builtin_add_overflow(sum, extent, &sum)) return std::nullopt;
  }
  if (__builtin_mul_overflow(sum, row_bytes, &bytes)) return std::nullopt;
  return sum;
}

Status too_large() {
  return {StatusCode::kArgument,
          "the rows of all ranks would be over 8 EiB; give fewer rows at a time"};
}

// Enqueue has refused what can be known there.
bool is_output_too_small(const Operation& operation) {
  return operation.output_bytes != 0 && operation.result_bytes > operation.output_bytes;
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  const std::less<const std::byte*> before;
  return before(a, b + b_bytes) && before(b, a + a_bytes);
}

bool does_output_meet_input(const Operation& operation) {
  const std::size_t bytes = own_bytes(operation);
  return bytes > 0 && overlap(operation.input, bytes, operation.output, operation.result_bytes);
}

// Where the operation's tensor lies. Not zeroed: every byte is written. kMemory on this rank alone
// when there is no such memory.
Status take_memory(Operation& operation, std::size_t bytes, const char* purpose,
                   const char* advice = "give fewer rows at a time") {
  std::string reason = "out of memory";
  if (operation.device == kHostDevice) {
    operation.owned.reset(new (std::nothrow) std::byte[bytes]);
    if (operation.owned != nullptr) return Status::success();
  } else if (bytes == 0) {
    operation.owned.reset();
    return Status::success();
  } else {
    const Status status = operation.accelerator->allocate(
        operation.device, Accelerator::Room::kDevice, bytes, &operation.owned);
    if (status.ok()) return status;
    reason = status.message;
  }
  return {StatusCode::kMemory, std::string("making room for the ") + std::to_string(bytes) +
                                   " bytes of " + purpose + " of " + tensor_words(operation.name) +
                                   ": " + reason + "; " + advice};
}

// From one place where the operation's tensor lies to another; on a device when the input is ready,
// and before what else it is given there.
Status copy(Operation& operation, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (operation.device == kHostDevice) {
    std::memcpy(to, from, bytes);
    return Status::success();
  }
  Accelerator& accelerator = *operation.accelerator;
  const Status status = accelerator.await(operation.device, *operation.ready);
  return status.ok()
             ? accelerator.copy(operation.device, Accelerator::Way::kOnDevice, to, from, bytes)
             : status;
}

// An allgather writes the ranks' rows in no order: an input that lies among them is copied aside.
Status copy_input_aside(Operation& operation) {
  const std::size_t bytes = own_bytes(operation);
  if (Status status = take_memory(operation, bytes, "the input"); !status.ok()) return status;
  Status status = copy(operation, operation.owned.get(), operation.input, bytes);
  operation.input = operation.owned.get();
  if (status.ok() && operation.device != kHostDevice)
    status = operation.accelerator->mark_work(operation.device, &operation.ready);
  return status;
}

// The library's memory, if the result cannot go where the caller wants it while the peers are
// served.
Status take_result_memory(Operation& operation) {
  if (is_output_too_small(operation)) operation.output = nullptr;
  operation.is_staged = operation.output != nullptr && does_output_meet_input(operation);
  if (operation.output != nullptr && !operation.is_staged) return Status::success();
  Status status = take_memory(operation, operation.result_bytes, "the result");
  if (operation.output == nullptr) operation.output = operation.owned.get();
  return status;
}

// The library's own, always: of indices and of values. A rank that has joined wants neither.
Status take_sparse_memory(Operation& operation) {
  if (operation.is_absent) return Status::success();
  const std::size_t bytes = static_cast<std::size_t>(operation.result_shape[0]) *
                            element_size(operation.description.index_type);
  if (Status status = take_memory(operation, bytes, "the result's indices"); !status.ok())
    return status;
  operation.owned_indices = std::move(operation.owned);
  Status status = take_memory(operation, operation.result_bytes, "the result");
  operation.output = operation.owned.get();
  return status;
}

}  // namespace

std::int64_t own_elements(const Operation& operation) {
  const bool varies = has_own_extents(operation.description.kind);
  return operation.description.elements() * (varies ? operation.first_extent : 1);
}

std::size_t own_bytes(const Operation& operation) {
  return static_cast<std::size_t>(own_elements(operation)) *
         element_size(operation.description.type);
}

Status size_result(Operation& operation, const std::vector<std::int64_t>& first_extents,
                   const Place& place) {
  const TensorDescription& description = operation.description;
  operation.result_shape = description.shape;
  std::int64_t bytes = description.bytes();
  if (has_own_extents(description.kind)) {
    // Of a sparse one the indices may be the larger part.
    const bool is_sparse = description.kind == CollectiveKind::kSparseAllreduce;
    const std::int64_t index_bytes = is_sparse ? std::int64_t{8} : 0;
    const auto rows = gathered_extent(first_extents, std::max(bytes, index_bytes));
    if (!rows) return too_large();
    operation.result_shape[0] = *rows;
    bytes *= *rows;
  } else if (description.kind == CollectiveKind::kReducescatter) {
    const std::int64_t rows = description.shape[0];
    const std::int64_t own = rows_of(rows, place.size, place.rank).count;
    operation.result_shape[0] = own;
    bytes = rows == 0 ? 0 : bytes / rows * own;
  }
  if (description.kind == CollectiveKind::kAlltoall) bytes = 0;  // this rank's: not yet
  operation.result_bytes = static_cast<std::size_t>(bytes);
  return Status::success();
}

// An alltoall's rows without bytes are counted all the same.
bool moves_nothing(const Operation& operation, const std::vector<std::int64_t>& first_extents) {
  const TensorDescription& description = operation.description;
  if (!has_own_extents(description.kind)) return description.bytes() == 0;
  const std::int64_t rows =
      std::accumulate(first_extents.begin(), first_extents.end(), std::int64_t{0});
  return rows == 0 || (description.kind == CollectiveKind::kAllgather && description.bytes() == 0);
}

Status make_room(Operation& operation) {
  if (operation.description.kind == CollectiveKind::kSparseAllreduce)
    return take_sparse_memory(operation);
  if (operation.result_bytes == 0 || operation.description.kind == CollectiveKind::kAllocate)
    return Status::success();
  if (operation.description.kind == CollectiveKind::kReducescatter)
    return take_result_memory(operation);
  const bool gathers = operation.description.kind == CollectiveKind::kAllgather;
  if (gathers && is_output_too_small(operation)) operation.output = nullptr;
  if (operation.output == nullptr) {
    Status status = take_memory(operation, operation.result_bytes, "the result");
    operation.output = operation.owned.get();
    return status;
  }
  return gathers && does_output_meet_input(operation) ? copy_input_aside(operation)
                                                      : Status::success();
}

std::byte* destination(const Operation& operation) {
  return operation.is_staged ? operation.owned.get() : operation.output;
}

std::byte* make_room_for(Operation& operation, const std::vector<std::int64_t>& received) {
  operation.received = received;
  const std::int64_t rows = std::accumulate(received.begin(), received.end(), std::int64_t{0});
  operation.result_shape[0] = rows;
  operation.result_bytes = static_cast<std::size_t>(rows * operation.description.bytes());
  if (operation.result_bytes == 0 || !take_result_memory(operation).ok()) return nullptr;
  return destination(operation);
}

void take_given(Operation& operation, MemoryPtr memory) {
  operation.owned = std::move(memory);
  operation.output = operation.owned.get();
}

Status hand_over(Operation& operation, MomentPtr ended) {
  const bool is_on_device = operation.device != kHostDevice;
  if (is_on_device) operation.ended = std::move(ended);
  if (operation.description.kind == CollectiveKind::kAllocate && operation.owned == nullptr) {
    Status status =
        take_memory(operation, operation.result_bytes, "the allocation", "ask for less");
    operation.output = operation.owned.get();
    return status;
  }
  if (is_output_too_small(operation)) {
    return {StatusCode::kArgument, "the result has " + std::to_string(operation.result_bytes) +
                                       " bytes, and output_bytes is " +
                                       std::to_string(operation.output_bytes) +
                                       "; give it more room, or none and take the library's"};
  }
  if (!operation.is_staged) return Status::success();
  Status status;
  if (operation.ended != nullptr)
    status = operation.accelerator->await(operation.device, *operation.ended);
  if (status.ok())
    status = copy(operation, operation.output, operation.owned.get(), operation.result_bytes);
  if (status.ok() && is_on_device)
    status = operation.accelerator->mark_work(operation.device, &operation.ended);
  if (!status.ok()) operation.ended = nullptr;  // when what was given ends is not known
  return status;
}

// Where nobody knows what still works on it (a failed one's without an end, or of a stream that
// cannot be asked: a graph is being captured from it, say), it goes with the operation, and the
// device is waited for.
void give_back_result(Operation& operation) {
  if (operation.device == kHostDevice) return;
  if (operation.owned == nullptr && operation.owned_indices == nullptr) return;
  const bool is_end_known =
      operation.ended != nullptr ? operation.is_followed.load() : operation.outcome.ok();
  if (!is_end_known) return;
  MomentPtr moment;
  if (!operation.accelerator->mark(operation.device, operation.stream, &moment).ok()) return;
  for (MemoryPtr* const memory : {&operation.owned, &operation.owned_indices})
    if (*memory != nullptr) operation.accelerator->keep_until(moment, std::move(*memory));
}

}  // namespace hv::runtime
