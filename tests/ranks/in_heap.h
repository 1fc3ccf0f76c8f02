// The memory of an operation's segments, moved into the rank's heap for as long as it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <vector>

#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {

inline SlotRings& host_of(const RankContext& context) {
  return context.fabric.data_plane()->host();
}

class InHeap {
 public:
  // misaligned: bytes by which each begins behind a page's start. Every `every`-th segment moves.
  InHeap(const RankContext& context, CollectiveRequest& request, std::size_t misaligned,
         std::size_t every = 1)
      : heap_(*host_of(context).memory().own_heap()), misaligned_(misaligned) {
    const std::size_t element = element_size(request.type);
    std::size_t index = 0;
    for (Segment& segment : request.segments) {
      if (index++ % every != 0) continue;
      const std::size_t bytes = static_cast<std::size_t>(segment.count) * element;
      if (bytes == 0) continue;  // nobody looks where nothing lies
      Moved moved{segment.output, nullptr, nullptr, bytes};
      moved.input = allocate(bytes);
      std::memcpy(moved.input + misaligned, segment.input, bytes);
      moved.output = segment.output == segment.input ? moved.input : allocate(bytes);
      segment.input = moved.input + misaligned;
      segment.output = moved.output + misaligned;
      moved_.push_back(moved);
    }
  }
  InHeap(const InHeap&) = delete;
  InHeap& operator=(const InHeap&) = delete;
  ~InHeap() {
    for (const Moved& moved : moved_) {
      heap_.release(moved.input);
      if (moved.output != moved.input) heap_.release(moved.output);
    }
  }

  // The results, to where they were first asked for.
  void bring_back() const {
    for (const Moved& moved : moved_)
      std::memcpy(moved.home, moved.output + misaligned_, moved.bytes);
  }

 private:
  struct Moved {
    std::byte *home, *input, *output;
    std::size_t bytes;
  };

  std::byte* allocate(std::size_t bytes) {
    std::byte* const memory = heap_.allocate(bytes + misaligned_);
    require(memory != nullptr, "room in the heap");
    return memory;
  }

  SharedHeap& heap_;
  const std::size_t misaligned_;
  std::vector<Moved> moved_;
};

}  // namespace hv::runtime
