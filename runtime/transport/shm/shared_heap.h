// SharedHeap: gives out pieces of a rank's heap, the memory for tensors that every rank of the host
// reaches.
// SPDX-License-Identifier: Apache-2.0
//
// A collective whose tensors lie there on all ranks reads and writes them where they are
// (allreduce_in_place.cc). Pieces are whole pages; the pages of one that is given back go to the
// system. What is kept of the pieces lies outside of the heap, where no peer writes. Any thread.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace hv::runtime {

// Memory is mapped, given back and shared in whole pages.
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t up_to_page(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

class SharedHeap {
 public:
  // [heap, heap + bytes) stays mapped as long as `owner` lives, and with it whatever is not given
  // back.
  SharedHeap(std::byte* heap, std::size_t bytes, std::shared_ptr<void> owner)
      : heap_(heap), bytes_(bytes), owner_(std::move(owner)) {
    if (bytes_ > 0) free_[0] = bytes_;
  }

  // [memory, memory + bytes) lies in the heap; *offset: where.
  bool find(const void* memory, std::size_t bytes, std::size_t* offset) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    const auto begin = reinterpret_cast<std::uintptr_t>(heap_);
    if (at < begin || at - begin > bytes_ || bytes > bytes_ - (at - begin)) return false;
    *offset = at - begin;
    return true;
  }
  // False in a forked child: what its parent has given out is not the child's to give back.
  bool is_of_this_process() const { return process_ == ::getpid(); }
  // A piece of at least so many bytes at the start of a page; nullptr: there is no room.
  std::byte* allocate(std::size_t bytes);
  // False: no such piece.
  bool release(std::byte* piece);

 private:
  std::byte* const heap_;
  const std::size_t bytes_;
  const std::shared_ptr<void> owner_;
  const pid_t process_ = ::getpid();
  std::mutex mutex_;                          // guards both maps
  std::map<std::size_t, std::size_t> free_;   // size by offset; no two touch
  std::map<std::size_t, std::size_t> given_;  // size by offset
};

}  // namespace hv::runtime
