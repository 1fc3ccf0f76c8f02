// Walks the segments of a fused operation as if they were one piece of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/collective/collective.h"

namespace hv::runtime {

// Visits byte ranges of the segments laid end to end. Ranges must be asked for in ascending order,
// so that no search is needed: a pipeline keeps one walk per stage.
class SegmentWalk {
 public:
  SegmentWalk(const std::vector<Segment>& segments, std::size_t element_bytes)
      : segments_(&segments), element_bytes_(element_bytes) {}

  // The longest piece of at most `bytes` bytes that lies at `from` in one segment.
  struct Piece {
    const std::byte* input;
    std::byte* output;
    std::size_t bytes;
    std::size_t segment;  // which one
    std::size_t offset;   // in it, bytes
  };
  Piece piece(std::size_t from, std::size_t bytes) {
    for (;;) {
      const Segment& segment = (*segments_)[index_];
      const std::size_t size = static_cast<std::size_t>(segment.count) * element_bytes_;
      if (from < start_ + size) {
        const std::size_t offset = from - start_;
        return {segment.input + offset, segment.output + offset, std::min(bytes, size - offset),
                index_, offset};
      }
      start_ += size;
      ++index_;
    }
  }

  // visit(input, output, bytes) for each piece of [from, from + bytes), in order.
  template <typename Visit>
  void visit(std::size_t from, std::size_t bytes, Visit&& visit_piece) {
    while (bytes > 0) {
      const Piece next = piece(from, bytes);
      visit_piece(next.input, next.output, next.bytes);
      from += next.bytes;
      bytes -= next.bytes;
    }
  }

 private:
  const std::vector<Segment>* segments_;
  std::size_t element_bytes_;
  std::size_t index_ = 0;
  std::size_t start_ = 0;  // byte at which segment index_ begins
};

inline std::size_t total_elements(const std::vector<Segment>& segments) {
  std::size_t count = 0;
  for (const Segment& segment : segments) count += static_cast<std::size_t>(segment.count);
  return count;
}

}  // namespace hv::runtime
