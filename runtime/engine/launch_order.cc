// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/launch_order.h"

namespace hv::runtime {

// Another set's group must have been given to the device before: backends keep their own order
// only.
bool LaunchOrder::take_turn(ProcessSets& sets, Session& session) {
  const Session* const last = sets.find(last_);
  if (!session.has_gated() || (last_ != session.set() && last != nullptr && last->is_launching()))
    return false;
  session.start_gated();
  last_ = session.set();
  return true;
}

bool LaunchOrder::advance(ProcessSets& sets) {
  Session& all = sets.all();
  sets.for_each([&](Session& set) {
    for (std::size_t turn = set.take_wanted_turns(); turn > 0; --turn) all.ask_launch(set.set());
  });
  for (const std::uint32_t set : all.take_turns())
    if (sets.find(set) != nullptr) turns_.push_back(set);
  bool has_started = false;
  while (!turns_.empty()) {
    Session* const session = sets.find(turns_.front());
    if (session != nullptr && !take_turn(sets, *session)) return has_started;
    turns_.pop_front();
    has_started = true;
  }
  return (all.is_closing() && advance_without_turns(sets)) || has_started;
}

bool LaunchOrder::advance_without_turns(ProcessSets& sets) {
  bool has_started = false, is_blocked = false;
  sets.for_each([&](Session& set) {
    while (!is_blocked && set.has_gated()) {
      is_blocked = !take_turn(sets, set);
      has_started |= !is_blocked;
    }
    is_blocked |= !set.is_closing();  // it may decide on more, which comes before the next sets'
  });
  return has_started;
}

}  // namespace hv::runtime
