// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shared_heap.h"

#include <sys/mman.h>

#include <algorithm>

namespace hv::runtime {

std::byte* SharedHeap::allocate(std::size_t bytes) {
  if (bytes > bytes_) return nullptr;
  const std::size_t size = std::max(kPageBytes, up_to_page(bytes));
  const std::lock_guard lock(mutex_);
  const auto fits = [size](const auto& hole) { return hole.second >= size; };
  const auto hole = std::find_if(free_.begin(), free_.end(), fits);
  if (hole == free_.end()) return nullptr;
  const auto [offset, room] = *hole;
  free_.erase(hole);
  if (room > size) free_[offset + size] = room - size;
  // A forked child may look at its parent's tensors, as at any other memory of its parent's.
  if (given_.empty()) (void)::madvise(heap_, bytes_, MADV_DOFORK);
  given_[offset] = size;
  return heap_ + offset;
}

bool SharedHeap::release(std::byte* piece) {
  const std::lock_guard lock(mutex_);
  if (piece < heap_ || piece >= heap_ + bytes_) return false;
  const auto given = given_.find(static_cast<std::size_t>(piece - heap_));
  if (given == given_.end()) return false;
  auto [offset, size] = *given;
  given_.erase(given);
  // Memory between threads (inproc_source.h) keeps its pages: nothing is lost by that.
  (void)::madvise(piece, size, MADV_REMOVE);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && after->first == offset + size) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return true;
    }
  }
  free_[offset] = size;
  return true;
}

}  // namespace hv::runtime
