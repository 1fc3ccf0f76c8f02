// SetPlane: the fabric as the members of one process set see it.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks are members here, numbered from 0 in the set's order. The set has cells of the hosts'
// memory and lanes between hosts to itself, so its collectives meet no other set's bytes.
#pragma once

#include <vector>

#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

// What of the hosts' memory and connections a set has to itself.
struct SetPlacement {
  std::vector<int> members;  // ranks of the job, ascending
  std::vector<int>
      cells{};    // of each: which of its cells in its host's memory; set 0: none, the first
  int lanes = 0;  // which block of lanes between hosts
};

// Where the members lie, numbered by their place in `members` (ranks of the job, ascending). This
// rank is one of them.
Topology topology_of_set(const Topology& job, const std::vector<int>& members);

class SetPlane : public DataPlane {
 public:
  // Opens the set's lanes to every member on another host, so that what a faster member sends finds
  // them. job: that of all ranks; it outlives this.
  SetPlane(DataPlane& job, const SetPlacement& placement);

  const Topology& topology() const override { return topology_; }
  SlotRings& host() override { return rings_; }
  Channel& channel(int member, int lane) override {
    return job_.channel(members_[static_cast<std::size_t>(member)], first_lane_ + lane);
  }
  Status health() const override { return job_.health(); }
  bool is_healthy() const override { return job_.is_healthy(); }

 private:
  DataPlane& job_;
  const std::vector<int> members_;
  const Topology topology_;
  const int first_lane_;
  SlotRings rings_;
};

// Every member is done with the set: leaves this rank's part of the hosts' memory as it was, and
// gives back what its lanes took.
void clear_set(DataPlane& set);

}  // namespace hv::runtime
