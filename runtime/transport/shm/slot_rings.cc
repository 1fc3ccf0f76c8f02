// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/slot_rings.h"

#include <utility>

namespace hv::runtime {

SlotRings::SlotRings(HostMemory& memory, std::vector<Place> places, int index)
    : memory_(memory), places_(std::move(places)), index_(index), slot_bytes_(memory.slot_bytes()) {
  for (const Place& place : places_)
    cells_.push_back(
        {memory.flags(place.local, place.cell), memory.slots(place.local, place.cell)});
}

void SlotRings::ring_others() {
  for (const Place& place : places_)
    if (place.local != memory_.index()) memory_.ring(place.local);
}

// The slots keep their bytes: nobody reads one before it has been written again.
void SlotRings::clear() {
  for (int line = 0; line < kRings * kFlags; ++line) {
    at_flag_access();
    cells_[static_cast<std::size_t>(index_)].flags[line].blocks.store(0, std::memory_order_relaxed);
  }
}

}  // namespace hv::runtime
