// What all collectives on the slot rings share: their turn, their end, and what a loss does to
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/device/kernels.h"
#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

// A collective's turn on a ring of slots, and which block numbers are its own.
struct RingTurn {
  int ring = 0;
  std::uint64_t ticket = 0;
  std::uint64_t first_block = 0;
};

// Who uses which ring. Collectives are started in the same order on every rank, so each rank gives
// out the same block numbers without asking anybody. On one ring they run one after the other;
// different rings do not wait for each other. Used by whoever drives.
class RingQueue {
 public:
  RingQueue() = default;
  // For what an operation carries out inside its own turn: the blocks of its ring from `block` on.
  RingQueue(int ring, std::uint64_t block) : only_ring_(ring) {
    rings_[static_cast<std::size_t>(ring)].blocks = block;
  }

  // The ring for an operation of that size: large ones share one, whose slots then stay in the
  // cache; small ones take turns on the others, so that none waits for a large one.
  int choose(std::size_t bytes) {
    constexpr std::size_t kLargeFromBytes = 64 << 10;
    if (only_ring_) return *only_ring_;
    if (bytes >= kLargeFromBytes) return 0;
    return 1 + static_cast<int>(small_operations_++ % (kRings - 1));
  }
  RingTurn take(int ring, std::uint64_t blocks) {
    Ring& state = rings_[static_cast<std::size_t>(ring)];
    const RingTurn turn{ring, state.taken++, state.blocks};
    state.blocks += blocks;
    return turn;
  }
  bool is_up(const RingTurn& turn) const {
    return rings_[static_cast<std::size_t>(turn.ring)].finished == turn.ticket;
  }
  void finish(const RingTurn& turn) { ++rings_[static_cast<std::size_t>(turn.ring)].finished; }

 private:
  struct Ring {
    std::uint64_t taken = 0;
    std::uint64_t finished = 0;
    std::uint64_t blocks = 0;
  };
  std::optional<int> only_ring_;
  std::array<Ring, kRings> rings_;
  std::uint64_t small_operations_ = 0;
};

// Walks the segments of a fused operation as if they were one piece of memory. Ranges must be asked
// for in ascending order, so that no search is needed: a pipeline keeps one walk per stage.
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

// None: what the table says.
inline const std::vector<AlgorithmWish> kNoWishes{};

// What an algorithm is made from. plane, rings and wishes outlive it.
struct CollectiveSetup {
  DataPlane& plane;
  RingQueue& rings;
  const Kernels& kernels;
  CollectiveRequest request;
  const std::vector<AlgorithmWish>* wishes = &kNoWishes;
};

// From here on results go past the caches: nothing of them would still be there when the caller
// looks. What is only copied leaves less behind there than what is reduced.
constexpr std::size_t kStreamReducedFromBytes = 16 << 20, kStreamCopiedFromBytes = 32 << 20;

// Of a pass over memory in which nobody is waited for, in one step.
constexpr std::size_t kPassBytes = 512 << 10;

class RingCollective : public Collective {
 public:
  Progress advance() final;
  Status status() const final { return status_; }
  bool has_begun() const final { return is_finished_ || setup_.rings.is_up(turn_); }

 protected:
  // blocks: how many slots' worth this operation sends through the ring, equal on every rank.
  RingCollective(CollectiveSetup setup, int ring, std::uint64_t blocks);

  // Does one block of one stage if that needs no waiting, well below a millisecond; false when
  // nothing can be done now.
  virtual bool step() = 0;
  virtual bool is_complete() const = 0;
  // From step(), which returns false then: this rank cannot go on.
  void give_up(Status status) { status_ = std::move(status); }

  // Flags of this operation's blocks: a rank has done `count` of them.
  bool has_reached(int local, Flag flag, std::uint64_t count) const {
    return host_.flag(local, turn_.ring, flag) >= turn_.first_block + count;
  }
  bool have_all_reached(Flag flag, std::uint64_t count) const {
    return host_.all_reached(turn_.ring, flag, turn_.first_block + count);
  }
  void raise(Flag flag, std::uint64_t count) {
    host_.raise(turn_.ring, flag, turn_.first_block + count);
    is_bell_due_ = true;
  }
  // So many bytes lie now where the others of this host read them.
  void count_copied(std::size_t bytes) {
    if (host_.ranks() > 1) host_.memory().count_copied(bytes);
  }
  std::byte* slot(int local, std::uint64_t block) const {
    return host_.slot(local, turn_.ring, turn_.first_block + block);
  }
  // This rank may fill its slot for `block`: everybody is done with what it held.
  bool is_slot_free(std::uint64_t block) const;
  std::uint64_t blocks() const { return blocks_; }
  // Bytes [from, from + bytes) of the tensors, where they can go to other hosts from where they lie
  // and arrive there: this rank is alone on its host, and they are whole words in one piece.
  std::optional<SegmentWalk::Piece> without_slot(SegmentWalk* walk, std::size_t from,
                                                 std::size_t bytes) const;
  // To where nobody reads, for a result of so many bytes in all.
  CopyKernel result_copy(std::size_t bytes) const {
    return bytes >= kStreamCopiedFromBytes ? setup_.kernels.stream_copy : setup_.kernels.copy;
  }
  std::size_t element_bytes() const { return element_size(setup_.request.type); }

  CollectiveSetup setup_;
  SlotRings& host_;
  const int me_;  // local index

 private:
  Progress fail(Status status);

  const std::uint64_t blocks_;
  RingTurn turn_;
  bool is_bell_due_ = false;
  bool is_finished_ = false;
  Status status_;

 protected:
  int ring() const { return turn_.ring; }
  std::uint64_t first_block() const { return turn_.first_block; }
};

// The request's postscale and divisor.
Finish finish_of(const CollectiveRequest& request);

}  // namespace hv::runtime
