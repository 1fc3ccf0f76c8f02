// What all collectives on the slot rings share: their turn, their end, and what a loss does to
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/collective/ring_queue.h"
#include "runtime/collective/segment_walk.h"
#include "runtime/device/kernels.h"
#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

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
