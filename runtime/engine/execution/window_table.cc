// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/window_table.h"

#include <algorithm>
#include <functional>

#include "runtime/engine/execution/result_room.h"

namespace hv::runtime {

void WindowTable::add(const std::byte* begin, std::size_t bytes, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  windows_.push_back({begin, bytes, number});
  is_empty_.store(false, std::memory_order_release);
}

const WindowTable::Window* WindowTable::that_meets(const std::byte* memory,
                                                   std::size_t bytes) const {
  const std::less<const std::byte*> before;
  const auto found = std::find_if(windows_.begin(), windows_.end(), [&](const Window& one) {
    return before(memory, one.begin + one.bytes) && before(one.begin, memory + bytes);
  });
  return memory == nullptr || bytes == 0 || found == windows_.end() ? nullptr : &*found;
}

// Between two ranks tensors go through the host's memory.
Status WindowTable::describe(Operation& operation) const {
  if (is_empty_.load(std::memory_order_acquire) || is_between_two(operation.description.kind))
    return Status::success();
  const std::size_t bytes = own_bytes(operation);
  const std::lock_guard lock(mutex_);
  const Window* const window = that_meets(operation.input, bytes);
  if (window == nullptr &&
      that_meets(operation.output, std::max(bytes, operation.output_bytes)) == nullptr)
    return Status::success();
  if (window == nullptr || operation.description.kind != CollectiveKind::kAllreduce ||
      operation.output != operation.input || operation.input < window->begin ||
      operation.input + bytes > window->begin + window->bytes)
    return {StatusCode::kUnsupported,
            tensor_words(operation.name) +
                ": it lies in memory from HVRUN_ALLOCATE, which is for allreduces in place; try: a "
                "copy of it"};
  operation.description.window = window->number;
  operation.description.window_offset = operation.input - window->begin;
  return Status::success();
}

}  // namespace hv::runtime
