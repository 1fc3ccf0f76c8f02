// SlotRings: the flags and slots through which the members of one process set on this host work.
// SPDX-License-Identifier: Apache-2.0
//
// Each member has a cell of the host's memory to itself (host_memory.h): a flag line for each ring
// and stage, and the rings' slots. A member writes only in its own cell. Flags count blocks upwards
// as long as the set lives and are never reset, so a reader can be late but never confused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/transport/shm/host_memory.h"

namespace hv::runtime {

// What a rank has done with the blocks of a ring's current and earlier collectives.
enum class Flag {
  kReady,    // copied in: its slot can be read
  kReduced,  // its share of the result can be read
  kDone,     // it will read nothing more of this block in others' slots
};

class SlotRings {
 public:
  // A member's place on this host: its local index, and which of its cells this set has.
  struct Place {
    int local;
    int cell;
  };
  // places: in the set's order; index: which of them this rank is. memory outlives this.
  SlotRings(HostMemory& memory, std::vector<Place> places, int index);

  // Members are counted from 0 here, this host's only.
  int ranks() const { return static_cast<int>(cells_.size()); }
  int index() const { return index_; }
  // A member's local index in the host's memory.
  int local_of(int member) const { return places_[static_cast<std::size_t>(member)].local; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  // What all sets of this host lie in.
  HostMemory& memory() const { return memory_; }

  // Slot of block number `block` in a member's ring.
  std::byte* slot(int member, int ring, std::uint64_t block) const {
    return cells_[static_cast<std::size_t>(member)].slots +
           (static_cast<std::size_t>(ring) * kSlotsPerRing + block % kSlotsPerRing) * slot_bytes_;
  }
  std::uint64_t flag(int member, int ring, Flag flag) const {
    at_flag_access();
    return line(member, ring, flag).blocks.load(std::memory_order_acquire);
  }
  // Sets this rank's own flag. The others look at it when they next advance; ring them with
  // ring_others().
  void raise(int ring, Flag flag, std::uint64_t blocks) {
    at_flag_access();
    line(index_, ring, flag).blocks.store(blocks, std::memory_order_release);
  }
  // True when every member's flag has reached `blocks`.
  bool all_reached(int ring, Flag flag, std::uint64_t blocks) const {
    for (int member = 0; member < ranks(); ++member)
      if (this->flag(member, ring, flag) < blocks) return false;
    return true;
  }
  void ring_others();
  // Makes this rank's cell as new, for the next set that gets it. When no member reads it any more.
  void clear();

 private:
  struct Cell {
    FlagLine* flags;
    std::byte* slots;
  };
  FlagLine& line(int member, int ring, Flag flag) const {
    return cells_[static_cast<std::size_t>(member)]
        .flags[static_cast<std::size_t>(ring) * kFlags + static_cast<std::size_t>(flag)];
  }

  HostMemory& memory_;
  const std::vector<Place> places_;
  const int index_;
  const std::size_t slot_bytes_;
  std::vector<Cell> cells_;
};

}  // namespace hv::runtime
