// RingQueue: which collective uses a ring of slots, and which block numbers are its own.
// SPDX-License-Identifier: Apache-2.0
//
// Collectives are started in the same order on every rank, so each rank gives out the same block
// numbers without asking the others. On one ring they run one after the other; different rings do
// not wait for each other. Used by the thread that drives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/transport/transport.h"

namespace hv::runtime {

struct RingTurn {
  int ring = 0;
  std::uint64_t ticket = 0;
  std::uint64_t first_block = 0;
};

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

}  // namespace hv::runtime
