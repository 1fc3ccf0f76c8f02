// The flags and slots that the members of a process set share on one host.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/slot_rings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/transport/inproc/inproc_source.h"

namespace hv::runtime {
namespace {

// One host of `ranks`, all in this thread, as each of them maps it.
struct RingHost {
  explicit RingHost(int ranks) {
    const HostGeometry geometry{ranks, 4096, 3};
    for (int r = 0; r < ranks; ++r)
      of.push_back(std::make_unique<HostMemory>(
          inproc_memory("slot_rings_test", geometry.total_bytes()), geometry, r));
  }
  // The same set, as each member sees it.
  std::vector<SlotRings> set(const std::vector<SlotRings::Place>& places) {
    std::vector<SlotRings> views;
    for (int member = 0; member < static_cast<int>(places.size()); ++member)
      views.emplace_back(*of[static_cast<std::size_t>(places[member].local)], places, member);
    return views;
  }
  std::vector<std::unique_ptr<HostMemory>> of;
};

}  // namespace

TEST_CASE("a flag that one member raises is seen by the others, and only that flag") {
  RingHost host(3);
  auto rings = host.set({{0, 0}, {1, 0}, {2, 0}});
  rings[1].raise(2, Flag::kReady, 7);
  CHECK(rings[0].flag(1, 2, Flag::kReady) == 7);
  CHECK(rings[0].flag(1, 2, Flag::kDone) == 0);
  CHECK(rings[0].flag(1, 1, Flag::kReady) == 0);
  CHECK(rings[0].flag(2, 2, Flag::kReady) == 0);
  CHECK_FALSE(rings[2].all_reached(2, Flag::kReady, 7));
  rings[0].raise(2, Flag::kReady, 8);
  rings[2].raise(2, Flag::kReady, 7);
  CHECK(rings[2].all_reached(2, Flag::kReady, 7));
}

TEST_CASE("slots lie apart, one for each member, ring and block of the ring") {
  RingHost host(2);
  const auto rings = host.set({{0, 0}, {1, 0}});
  std::vector<std::byte*> starts;
  for (int member = 0; member < 2; ++member)
    for (int ring = 0; ring < kRings; ++ring)
      for (std::uint64_t block = 0; block < kSlotsPerRing; ++block)
        starts.push_back(rings[0].slot(member, ring, block));
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 1; i < starts.size(); ++i) CHECK(starts[i] - starts[i - 1] >= 4096);
  CHECK(rings[0].slot(1, 0, 5) == rings[0].slot(1, 0, 5 + kSlotsPerRing));
}

TEST_CASE("sets in other cells share nothing, and members stand in the set's order") {
  RingHost host(3);
  auto all = host.set({{0, 0}, {1, 0}, {2, 0}});
  auto pair = host.set({{2, 1}, {0, 2}});
  pair[0].raise(0, Flag::kDone, 3);
  CHECK(pair[1].flag(0, 0, Flag::kDone) == 3);
  CHECK(pair[1].flag(1, 0, Flag::kDone) == 0);
  CHECK(all[0].flag(2, 0, Flag::kDone) == 0);
  CHECK(pair[0].slot(0, 0, 0) != all[2].slot(2, 0, 0));
  CHECK(pair[0].slot(1, 0, 0) - pair[0].slot(0, 0, 0) < 0);
}

TEST_CASE("bells ring for the set's members only, and not for who rings") {
  RingHost host(3);
  auto pair = host.set({{2, 1}, {0, 2}});
  const std::uint32_t before[] = {host.of[0]->value(), host.of[1]->value(), host.of[2]->value()};
  pair[0].ring_others();
  CHECK(host.of[0]->value() != before[0]);
  CHECK(host.of[1]->value() == before[1]);
  CHECK(host.of[2]->value() == before[2]);
}

TEST_CASE("a cell that was cleared counts from 0 again, the other members' stay") {
  RingHost host(2);
  auto rings = host.set({{0, 1}, {1, 1}});
  for (auto& member : rings)
    for (int ring = 0; ring < kRings; ++ring)
      for (const Flag flag : {Flag::kReady, Flag::kReduced, Flag::kDone})
        member.raise(ring, flag, 9);
  rings[0].clear();
  for (int ring = 0; ring < kRings; ++ring)
    for (const Flag flag : {Flag::kReady, Flag::kReduced, Flag::kDone}) {
      CHECK(rings[1].flag(0, ring, flag) == 0);
      CHECK(rings[0].flag(1, ring, flag) == 9);
    }
}

}  // namespace hv::runtime
