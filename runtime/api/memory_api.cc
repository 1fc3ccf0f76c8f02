// The functions of hvrun.h that give out memory and fill it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>
#include <mutex>

#include "runtime/api/context_registry.h"
#include "runtime/api/last_error.h"
#include "runtime/device/kernels.h"
#include "runtime/include/hvrun/hvrun.h"
#include "runtime/transport/shm/shared_heap.h"

namespace hv::runtime {
namespace {

// From here on a copy goes past the caches: it would drive out of them what is computed with.
constexpr std::size_t kStreamedFromBytes = 256 << 10;

// What was given out and by whom; it may outlive its context. Never destroyed: threads may outlive
// main.
struct Pieces {
  std::mutex mutex;                                 // guards of
  std::map<void*, std::shared_ptr<SharedHeap>> of;  // nullptr: memory of this process alone
  static Pieces& instance() {
    static auto* const pieces = new Pieces;
    return *pieces;
  }
};

Status allocate(hvrun_context* context, std::size_t bytes, void** memory) {
  if (memory == nullptr) return {StatusCode::kArgument, "hvrun_alloc: memory is NULL"};
  *memory = nullptr;
  std::shared_ptr<Context> found;
  if (Status status = ContextRegistry::instance().find(context, &found); !status.ok())
    return status;
  std::shared_ptr<SharedHeap> heap = found->heap();
  void* piece = heap ? heap->allocate(bytes) : nullptr;
  if (piece == nullptr) {
    heap = nullptr;
    if (::posix_memalign(&piece, kPageBytes, bytes == 0 ? 1 : bytes) != 0)
      return {StatusCode::kMemory,
              "hvrun_alloc: no memory for " + std::to_string(bytes) + " bytes"};
  }
  Pieces& pieces = Pieces::instance();
  const std::lock_guard lock(pieces.mutex);
  pieces.of[piece] = std::move(heap);
  *memory = piece;
  return Status::success();
}

Status release_memory(void* memory) {
  if (memory == nullptr) return Status::success();
  Pieces& pieces = Pieces::instance();
  const std::lock_guard lock(pieces.mutex);
  const auto piece = pieces.of.find(memory);
  if (piece == pieces.of.end())
    return {StatusCode::kArgument, "hvrun_free: this memory is not from hvrun_alloc, or was freed"};
  if (piece->second == nullptr) {
    std::free(memory);
  } else if (piece->second->is_of_this_process()) {
    piece->second->release(static_cast<std::byte*>(memory));
  }
  pieces.of.erase(piece);
  return Status::success();
}

Status copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return Status::success();
  if (to == nullptr || from == nullptr)
    return {StatusCode::kArgument, "hvrun_copy: to or from is NULL"};
  const Kernels& kernels = best_kernels();
  (bytes < kStreamedFromBytes ? kernels.copy : kernels.stream_copy)(to, from, bytes);
  return Status::success();
}

}  // namespace
}  // namespace hv::runtime

namespace api = hv::runtime;

hvrun_status hvrun_alloc(hvrun_context* context, size_t bytes, void** memory) {
  return api::guarded([&] { return api::allocate(context, bytes, memory); });
}

hvrun_status hvrun_free(void* memory) {
  return api::guarded([&] { return api::release_memory(memory); });
}

hvrun_status hvrun_copy(void* to, const void* from, size_t bytes) {
  return api::guarded([&] { return api::copy(to, from, bytes); });
}
