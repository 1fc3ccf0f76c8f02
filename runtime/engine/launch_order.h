// The order in which groups of all process sets are given to devices: the same on every rank.
// SPDX-License-Identifier: Apache-2.0
//
// Two sets that share two GPUs must not be given to them in different orders: each GPU's kernel
// would wait for one that stands behind the other's. Set 0 decides the order, since all ranks have
// its decisions alike: its own groups stand where it decides on them, and a turn of another set
// where that set's root has asked for one, once for each group that it has decided on. Sets know
// nothing of each other otherwise, so a turn may come before the group that it is for has, and the
// other way round; then the one waits for the other. When set 0 decides nothing more (a rank leaves
// the job) what has been decided elsewhere has no turn: it goes set by set, in order of their
// numbers. Groups of the host's memory need no turn, but stay behind those of their set that do:
// what a GPU's group exchanges by a backend for the host has its place among all that this backend
// is given, and every rank gives it the same. So they may wait for another set's group that is on
// its way to a device; what only passes through the host keeps nobody waiting.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/engine/process_sets.h"

namespace hv::runtime {

// One thread at a time (whoever holds the engine's progress).
class LaunchOrder {
 public:
  // Starts what may start now. True: something was.
  bool advance(ProcessSets& sets);

 private:
  bool take_turn(ProcessSets& sets, Session& session);
  bool advance_without_turns(ProcessSets& sets);

  std::deque<std::uint32_t> turns_;
  std::uint32_t last_ = 0;  // the set that was started last
};

}  // namespace hv::runtime
