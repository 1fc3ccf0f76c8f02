// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/gpu_tensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "runtime/engine/execution/result_room.h"

namespace hv::runtime {
namespace {

bool has_tensors(CollectiveKind kind) {
  return kind != CollectiveKind::kBarrier && kind != CollectiveKind::kJoin && !is_set_change(kind);
}

// What the caller's output has room for: of an allgather and an alltoall only the caller knows.
std::size_t output_room(const Operation& operation, std::size_t input_bytes) {
  return has_own_extents(operation.description.kind) ? operation.output_bytes : input_bytes;
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  const std::less<const std::byte*> before;
  return before(a, b + b_bytes) && before(b, a + a_bytes);
}

MemoryPtr on_host(const Bytes& bytes) {
  MemoryPtr memory(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), memory.get());
  return memory;
}

}  // namespace

std::unique_ptr<GpuTensors> GpuTensors::wanted(int rank) {
  return std::getenv("HVRUN_TEST_MEMORY") != nullptr ? std::make_unique<GpuTensors>(rank) : nullptr;
}

std::byte* GpuTensors::put(const std::byte* bytes, std::size_t count, Place* place) {
  place->blocks.push_back(gpu_.put(bytes, count));
  return place->blocks.back();
}

// An output that lies in the input does so there, too. One whose size is unknown before the result
// is becomes the library's, and is copied to the caller's afterwards.
void GpuTensors::take_there(Operation& operation) {
  const TensorDescription& description = operation.description;
  if (!has_tensors(description.kind) || operation.device != kHostDevice) return;
  const std::lock_guard lock(mutex_);
  const std::size_t bytes =
      static_cast<std::size_t>(own_elements(operation)) * element_size(description.type);
  const std::size_t room = output_room(operation, bytes);
  const std::size_t input_bytes = operation.input == nullptr ? 0 : bytes;
  const std::byte* const input = operation.input;
  std::byte* const output = operation.output;
  const bool is_inside = output != nullptr && overlap(input, input_bytes, output, room);
  const std::byte* const begin = is_inside ? std::min<const std::byte*>(input, output) : input;
  const std::byte* const end = is_inside
                                   ? std::max<const std::byte*>(input + input_bytes, output + room)
                                   : input + input_bytes;
  Place& place = places_[&operation];
  place.host = output;
  std::byte* const there = put(begin, static_cast<std::size_t>(end - begin), &place);
  operation.input = input == nullptr ? nullptr : there + (input - begin);
  if (output != nullptr)
    operation.output =
        is_inside ? there + (output - begin) : (room > 0 ? put(nullptr, room, &place) : nullptr);
  if (description.kind == CollectiveKind::kSparseAllreduce)
    operation.indices =
        put(operation.indices,
            static_cast<std::size_t>(operation.first_extent) * element_size(description.index_type),
            &place);
  operation.device = gpu_.number();
  operation.stream = gpu_.stream();
  operation.description.memory = MemoryKind::kCuda;
}

void GpuTensors::bring_back(Operation& operation) {
  const std::lock_guard lock(mutex_);
  auto place = places_.extract(&operation);
  if (place.empty()) return;
  if (operation.outcome.ok()) copy_back(operation, place.mapped().host);
  for (const std::byte* const block : place.mapped().blocks) gpu_.take_away(block);
}

void GpuTensors::copy_back(Operation& operation, std::byte* host) {
  if (operation.owned_indices != nullptr) {
    const std::size_t bytes = static_cast<std::size_t>(operation.result_shape[0]) *
                              element_size(operation.description.index_type);
    operation.owned_indices = on_host(gpu_.get(operation.owned_indices.get(), bytes));
  }
  const Bytes result = gpu_.get(operation.output, operation.result_bytes);
  if (host == nullptr) {
    operation.owned = on_host(result);
    operation.output = operation.owned.get();
  } else {
    std::copy(result.begin(), result.end(), host);
    operation.output = host;
  }
}

}  // namespace hv::runtime
